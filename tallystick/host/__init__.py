"""The machine that we run on: who sits at the terminal, whom files are for, how often garbage is collected."""
