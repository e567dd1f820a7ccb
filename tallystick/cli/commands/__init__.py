"""The commands of the command line, one module per subject. Heavy imports are inside the commands: --help is quick."""
