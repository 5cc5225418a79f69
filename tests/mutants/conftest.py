"""What pytest leaves alone here."""

collect_ignore = ["mechanical.py"]  # imports Cosmic Ray, which only `nox -s mutation` installs
