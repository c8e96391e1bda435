kccachetest wicked -th "$THREADS" "$((800000 / THREADS))"
