"""What lasts: the journal, the run folder, the corpus, and the sources of problems."""
