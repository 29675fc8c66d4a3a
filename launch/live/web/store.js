// What a client keeps in this browser: its key, training files, its last answer, that its person agreed and, if
// allowed, the examples. Each is under the client's own name, so that links of several seats opened in one browser do
// not meet.

const [DATABASE, TABLE] = ["live-rounds", "kept"];

export class Store {
  constructor(name, database) {
    this.prefix = `${name}/`;
    this.database = database; // null where a browser keeps nothing: then until the page is closed
    this.memory = new Map();
  }

  static async open(name) {
    try {
      const request = indexedDB.open(DATABASE, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
      return new Store(name, await settle(request));
    } catch {
      return new Store(name, null);
    }
  }

  get isKept() {
    return this.database !== null;
  }

  async get(name) {
    return this.database ? this.use("readonly", (table) => table.get(this.prefix + name)) : this.memory.get(name);
  }

  async set(name, value) {
    if (this.database) await this.use("readwrite", (table) => table.put(value, this.prefix + name));
    else this.memory.set(name, value);
  }

  async remove(name) {
    if (this.database) await this.use("readwrite", (table) => table.delete(this.prefix + name));
    else this.memory.delete(name);
  }

  // The names that begin so.
  async list(start) {
    if (!this.database) return [...this.memory.keys()].filter((name) => name.startsWith(start));
    const first = this.prefix + start;
    const keys = await this.use("readonly", (table) => table.getAllKeys(IDBKeyRange.bound(first, `${first}\uffff`)));
    return keys.map((key) => key.slice(this.prefix.length));
  }

  // Everything of this client.
  async forget() {
    for (const name of await this.list("")) await this.remove(name);
  }

  use(mode, action) {
    return settle(action(this.database.transaction(TABLE, mode).objectStore(TABLE)));
  }
}

function settle(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = request.onblocked = () => reject(request.error ?? new Error("the browser's storage is in use"));
  });
}
