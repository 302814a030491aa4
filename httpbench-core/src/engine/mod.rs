//! The load engine: executes one round of one scenario and answers what it saw.
