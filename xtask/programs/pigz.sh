head -c 64000000 "$INPUT" | pigz -6 -b 128 -p "$THREADS" -c > /dev/null
