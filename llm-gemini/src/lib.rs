//! The Gemini generateContent wire format
