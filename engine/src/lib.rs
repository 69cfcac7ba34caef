//! The vocabulary of every loop and the driver that performs its steps, journals its facts, resumes and replays
