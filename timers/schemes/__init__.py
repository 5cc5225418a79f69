"""The timer classes: each validates arguments, holds traits and calls the kernel of its name."""
