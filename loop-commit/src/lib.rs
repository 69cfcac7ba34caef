//! The two commit loops as pure decisions: facts so far, next step
