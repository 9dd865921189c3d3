-- A schema with what other programs do to SQLite, and rows that hold what the types do not say.

CREATE TABLE customers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name VARCHAR(40) NOT NULL COLLATE NOCASE,
    email TEXT UNIQUE,
    status TEXT NOT NULL DEFAULT "new" CHECK (status IN ('new', 'in_transit', 'done')),
    level INT CHECK (level IS NULL OR level IN (-1, 0, 10)),
    grade CHAR(1) CHECK (grade IN ('A', 'B', '')),
    active BOOLEAN NOT NULL DEFAULT 1,
    flag INTEGER CHECK (flag IN (0, 1)),
    rating REAL DEFAULT 0.5 CHECK (rating >= 0) CHECK (rating <= 5),
    balance DECIMAL(10,2) DEFAULT (0),
    birthday DATE,
    created DATETIME DEFAULT CURRENT_TIMESTAMP, -- text with seconds
    stamped DATETIME,
    token BLOB,
    picture BLOB,
    CHECK (email LIKE '%@%' OR email IS "none")
);
INSERT INTO customers VALUES
    (1, 'Ada', 'ada@example.org', 'new', 10, 'A', 1, 0, 4.5, 10.5, '2013-01-31', '2013-01-31 10:00:00',
        '2013-01-31 10:00:00.000000000', x'0192f0a1b2c37def8123456789abcdef', x'00'),
    (2, 'Björk', NULL, 'in_transit', NULL, '', 0, 1, 5, 7, NULL, '2013-02-01 00:00:00',
        '2014-01-31 10:00:00.123456789', NULL, x'ff00');
INSERT INTO customers (name) VALUES ('plain');

CREATE TABLE "select" (
    "type" TEXT, "a b" INTEGER, "c""d" TEXT, "2nd" INT, "größe" REAL, placedAt TEXT, placed_at TEXT,
    "self" TEXT, "%" TEXT, "match" TEXT, "ÄRGER" TEXT, "名前" TEXT, "é" TEXT, "fn" INTEGER NOT NULL, "x'y" TEXT DEFAULT 'it''s',
    "back\slash" TEXT, "select" TEXT PRIMARY KEY NOT NULL
) WITHOUT ROWID;
INSERT INTO "select" VALUES ('t', 1, 'c', 2, 1.5, 'p1', 'p2', 's', '%', 'm', 'ä', 'n', 'e', 7, 'q', 'b', 'key'),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 8, NULL, NULL, 'key 2');

CREATE TABLE Mixed (
    id INTEGER PRIMARY KEY,
    declared_integer INTEGER,
    declared_text TEXT,
    anything,
    numbers NUMERIC,
    moment DATETIME,
    truth BOOLEAN,
    price DECIMAL(8, 2),
    huge NUMERIC,
    whole NUMERIC(10),
    string STRING,
    no_bytes BLOB,
    unknown MYSTERY,
    real_as_text FLOAT
);
INSERT INTO Mixed VALUES
    (1, 12, 'text', 1, 1, 1388534400, 1, 10, 9007199254740993, 5, 'abc', NULL, NULL, 'n/a'),
    (2, 'twelve', x'00ff', '1', 2.5, '2014-01-01', 0, 10.25, 0.5, NULL, 'def', NULL, NULL, 1.5),
    (3, NULL, NULL, x'01', NULL, 2456658.5, 2, NULL, NULL, 7, NULL, NULL, NULL, 3),
    (4, -1, '', 1.0, 1e300, NULL, NULL, 3, 1, 8, '', NULL, NULL, NULL);

CREATE TABLE damaged (id INTEGER PRIMARY KEY, broken TEXT, cut TEXT);
INSERT INTO damaged VALUES (1, CAST(x'ff41' AS TEXT), CAST(x'410042' AS TEXT));

CREATE TABLE mixed_keys (code INTEGER_OR_TEXT PRIMARY KEY NOT NULL, parent INTEGER_OR_TEXT REFERENCES mixed_keys (code));
INSERT INTO mixed_keys VALUES (1, NULL), ('a', 1), (2, 'a');

CREATE TABLE orders (
    number INTEGER NOT NULL,
    shop TEXT NOT NULL,
    customer_id INT REFERENCES CUSTOMERS ON DELETE SET NULL ON UPDATE CASCADE,
    seller INTEGER NOT NULL REFERENCES customers (id) ON DELETE SET NULL,
    previous_number INTEGER, previous_shop TEXT,
    total REAL NOT NULL DEFAULT 0,
    tax REAL GENERATED ALWAYS AS (round(total * 0.2, 2)) STORED,
    label TEXT AS (shop || '-' || number),
    note TEXT,
    PRIMARY KEY (shop, number),
    UNIQUE (customer_id, note),
    FOREIGN KEY (previous_number, previous_shop) REFERENCES orders (number, shop) DEFERRABLE INITIALLY DEFERRED,
    CHECK (total >= 0 OR note IN ("refund", 'it''s'))
);
CREATE INDEX orders_seller ON orders (seller);
CREATE INDEX by_day ON orders (customer_id, total) WHERE total > 0;
CREATE UNIQUE INDEX "the note" ON orders (note) WHERE note <> "x";
CREATE INDEX lowered ON orders (lower(note), total DESC);
CREATE INDEX nocase ON orders (note COLLATE NOCASE);
CREATE INDEX second_of_seller ON orders (seller);
INSERT INTO orders (number, shop, customer_id, seller, previous_number, previous_shop, total, note) VALUES
    (1, 'north', 1, 2, NULL, NULL, 12.5, 'first'),
    (2, 'north', 2, 1, 1, 'north', 0, NULL),
    (1, 'south', NULL, 1, 2, 'north', 99, 'x');

CREATE TABLE tags (name TEXT PRIMARY KEY);
CREATE TABLE order_tags (
    shop TEXT, number INT, tag TEXT REFERENCES tags,
    PRIMARY KEY (shop, number, tag),
    FOREIGN KEY (shop, number) REFERENCES orders (shop, number) ON DELETE CASCADE
) WITHOUT ROWID;
INSERT INTO tags VALUES ('red'), ('blue');
INSERT INTO order_tags VALUES ('north', 1, 'red'), ('north', 1, 'blue');

CREATE TABLE strict_one (id INTEGER PRIMARY KEY, x ANY, y BLOB NOT NULL, z INT) STRICT;
INSERT INTO strict_one VALUES (1, '12', x'', 3), (2, 12, x'01', NULL);

CREATE TABLE no_key (a TEXT, b INTEGER);
INSERT INTO no_key VALUES ('a', 1), ('a', 1), (NULL, NULL);
CREATE TABLE unique_key (a TEXT NOT NULL, b INTEGER NOT NULL, c TEXT, UNIQUE (a, b), UNIQUE (c));
INSERT INTO unique_key VALUES ('a', 1, NULL), ('a', 2, NULL);
CREATE TABLE null_key (id TEXT PRIMARY KEY, v INTEGER);
INSERT INTO null_key VALUES (NULL, 1), ('b', 2);
CREATE TABLE wide_key (a, b, c, d, e, f, g, h, i, j, k, l, m, PRIMARY KEY (a, b, c, d, e, f, g, h, i, j, k, l, m));

CREATE TABLE lost (
    id INTEGER PRIMARY KEY,
    gone_id INTEGER REFERENCES nowhere (id),
    email TEXT REFERENCES customers (email),
    key_id INTEGER REFERENCES no_key (b),
    word TEXT REFERENCES customers (id)
);
INSERT INTO lost (id, word) VALUES (1, 'x');
CREATE TABLE hens (id INTEGER PRIMARY KEY, egg_id INTEGER REFERENCES eggs (id));
CREATE TABLE eggs (id INTEGER PRIMARY KEY, hen_id INTEGER NOT NULL REFERENCES hens (id) ON DELETE CASCADE);
INSERT INTO eggs VALUES (1, 1), (2, 1);
INSERT INTO hens VALUES (1, 1);
CREATE TABLE profiles (customer INTEGER PRIMARY KEY REFERENCES customers (id) ON DELETE CASCADE, bio TEXT);
INSERT INTO profiles VALUES (1, 'counts');
CREATE TABLE options ("" TEXT, id INTEGER PRIMARY KEY, fallback INTEGER DEFAULT 1 REFERENCES customers ON DELETE SET DEFAULT,
    UNIQUE (fallback) ON CONFLICT REPLACE);
INSERT INTO options (id) VALUES (1);
CREATE TABLE "Option" (id INTEGER PRIMARY KEY);
CREATE TABLE anabranch_mine (id INTEGER PRIMARY KEY);
CREATE VIEW seen AS SELECT * FROM customers;
CREATE VIRTUAL TABLE words USING fts5 (word);
