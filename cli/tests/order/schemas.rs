//! Every artifact of real runs follows its published schema.
