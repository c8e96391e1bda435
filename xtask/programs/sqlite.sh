python3 - << 'END'
import os, sqlite3, threading

THREADS = int(os.environ["THREADS"])
NAME = "file:shared?mode=memory&cache=shared"
keeper = sqlite3.connect(NAME, uri=True)
keeper.execute("create table words (n integer primary key, word text)")
keeper.executemany("insert into words values (?, ?)", ((n, f"word {n}") for n in range(1000)))
keeper.commit()
sums = []

def ask():
    connection = sqlite3.connect(NAME, uri=True)
    query = "select sum(length(word)) from words where n % 7 = ?"
    sums.append(sum(connection.execute(query, (n % 7,)).fetchone()[0]
                    for n in range(7 * (2100 // THREADS))))

threads = [threading.Thread(target=ask) for _ in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert sums == [7890 * (2100 // THREADS)] * THREADS, sums
END
