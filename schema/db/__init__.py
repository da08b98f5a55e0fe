"""The tables and the only code that speaks SQL; a function takes the connection and never commits."""
