-- Relations of every shape.

CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE matches (
    id INTEGER PRIMARY KEY,
    home_id INTEGER NOT NULL REFERENCES teams,
    away_id INTEGER NOT NULL REFERENCES teams,
    referee INTEGER REFERENCES people,
    away TEXT
);
CREATE TABLE people (id INTEGER PRIMARY KEY, boss INTEGER REFERENCES people, team_id INTEGER REFERENCES teams ON DELETE SET NULL);
CREATE TABLE profiles (person_id INTEGER PRIMARY KEY REFERENCES people ON DELETE CASCADE, bio TEXT);
CREATE TABLE passports (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL UNIQUE REFERENCES people);
CREATE TABLE friendships (person_id INTEGER REFERENCES people, friend_id INTEGER REFERENCES people, PRIMARY KEY (person_id, friend_id));
CREATE TABLE categories (id INTEGER PRIMARY KEY, parent_id INTEGER REFERENCES categories);
CREATE TABLE posts (id INTEGER PRIMARY KEY, tags TEXT, author INTEGER NOT NULL REFERENCES people (id), category_id INTEGER REFERENCES categories);
CREATE TABLE tags (name TEXT PRIMARY KEY NOT NULL);
CREATE TABLE post_tags (post_id INTEGER NOT NULL REFERENCES posts ON DELETE CASCADE, tag TEXT NOT NULL REFERENCES tags, since TEXT, PRIMARY KEY (post_id, tag));
CREATE TABLE rooms (building TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (building, number)) WITHOUT ROWID;
CREATE TABLE meetings (
    id INTEGER PRIMARY KEY, building TEXT, room INTEGER, person_id INTEGER REFERENCES people REFERENCES profiles (person_id),
    FOREIGN KEY (building, room) REFERENCES rooms
);
CREATE TABLE doors (
    building TEXT NOT NULL, from_room INTEGER NOT NULL, to_room INTEGER NOT NULL,
    PRIMARY KEY (building, from_room, to_room),
    FOREIGN KEY (building, from_room) REFERENCES rooms, FOREIGN KEY (building, to_room) REFERENCES rooms (building, number)
);
CREATE TABLE likes (
    id INTEGER PRIMARY KEY, post INTEGER NOT NULL REFERENCES posts, fan_id INTEGER NOT NULL REFERENCES people, UNIQUE (fan_id, post)
);
CREATE TABLE keys (
    building TEXT NOT NULL, room INTEGER NOT NULL, person_id INTEGER NOT NULL REFERENCES people ON DELETE CASCADE,
    PRIMARY KEY (person_id, room, building), FOREIGN KEY (building, room) REFERENCES rooms
);
CREATE TABLE boards (
    building TEXT NOT NULL, room INTEGER NOT NULL, colour TEXT,
    PRIMARY KEY (building, room), FOREIGN KEY (room, building) REFERENCES rooms (number, building)
);
CREATE TABLE passages (
    id INTEGER PRIMARY KEY, from_building TEXT NOT NULL, from_number INTEGER NOT NULL, to_building TEXT, to_number INTEGER,
    FOREIGN KEY (from_building, from_number) REFERENCES rooms, FOREIGN KEY (to_building, to_number) REFERENCES rooms
);
