"""One module per subject: the commands of the command line. Heavy imports stand inside the commands."""
