"""The site: static pages for any host, made from stored runs, claims and the timers' own code."""
