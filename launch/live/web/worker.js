// The client of the page: it connects, trains and keeps in a worker, so that neither a page that is drawn nor one that
// is hidden is in its way. The page asks by {id, ask, ...}; it is told {id, result} or {id, failed, isFinal}, and
// {tell, details}.

import { Client } from "./client.js";
import { sha256 } from "./sha256.js";
import { Store } from "./store.js";
import { startRuntime, Trainer } from "./trainer.js";

const LEAST_BETWEEN_MS = 100; // of two messages of progress
let client;
let runtime;
let told = 0;

const ASKS = {
  // Whether this browser keeps what a client needs to come back, whether it has, and what it agreed to before.
  async open({ url, token, version }) {
    const store = await Store.open(sha256(new TextEncoder().encode(token ?? "")));
    const load = async (content) => {
      await (runtime ??= startRuntime(version));
      return Trainer.load(content);
    };
    client = new Client({ url, token, store, load, tell });
    const [hadKey, agreed] = [Boolean(await store.get("key")), await store.get("agreed")];
    return { isKept: store.isKept, hadKey, agreed, key: await client.findKey() };
  },
  knock: () => client.knock(),
  describe: () => client.describe(),
  async agree({ agreed }) {
    await client.store.set("agreed", agreed);
  },
  async run({ name, own }) {
    return { ending: await client.run(name, own), isErased: client.isErased };
  },
  async stop() {
    await client.store.remove("agreed");
    client.stop();
  },
  wake: () => client.wake(),
  measure: () => client.measureOwn(),
  infer: ({ x }) => client.infer(x),
  forget: () => client.forget(),
};

onmessage = async ({ data: { id, ask, ...given } }) => {
  try {
    postMessage({ id, result: (await ASKS[ask](given)) ?? null });
  } catch (error) {
    postMessage({ id, failed: String(error.message ?? error), isFinal: error.isFinal ?? false });
  }
};

addEventListener("online", () => client?.wake());

function tell(what, details) {
  if (what === "step") {
    if (performance.now() - told < LEAST_BETWEEN_MS) return;
    told = performance.now();
  }
  postMessage({ tell: what, details: { ...details, bytes: { ...client.bytes } } });
}
