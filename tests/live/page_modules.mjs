// The page's modules in Node, for test_page_modules.py: one line of JSON in, one out. {do, ...} says what. The
// argument is a folder in which they lie together, as they are served.

import { createInterface } from "node:readline";

const load = (name) => import(`file://${process.argv[2]}/${name}.js`);
const { chooseBatch } = await load("batches");
const { Client } = await load("client");
const { describeAsked, describeLeaving, isOpenNetwork } = await load("consent");
const { pack, unpack, VERSION } = await load("messages");
const { sha256 } = await load("sha256");
const { Store } = await load("store");

const decode = (text) => Uint8Array.from(Buffer.from(text, "base64"));
const encode = (buffer) => Buffer.from(buffer).toString("base64");

const DOES = {
  version: () => VERSION,
  sha256: ({ parts }) => sha256(...parts.map(decode)),
  repack({ content }) {
    try {
      const { header, arrays } = unpack(decode(content).buffer);
      return encode(pack(header, arrays));
    } catch (error) {
      return `refused: ${error.message}`;
    }
  },
  batches: ({ order, numExamples, labels, size, steps }) =>
    Array.from({ length: steps }, (_, step) => {
      const { count, rows, labels: chosen } = chooseBatch(order, numExamples, labels, size, step);
      return { count, rows, labels: [...chosen] };
    }),
  isOpenNetwork: ({ addresses }) => addresses.map((address) => isOpenNetwork(new URL(address))),
  consent: ({ about, isLit }) => [...describeAsked(about, true, isLit), ...describeLeaving(about, "Firefox")],
  client: ({ script, knocks }) => play(script, knocks),
};

// A client whose sockets are played by a script: a list of connections, each a list of messages from the server,
// base64, or null for one that is refused. What it sends and tells comes back; training is pretended: each weight gets
// 1 more.
async function play(script, knocks) {
  const sent = [];
  const told = [];
  let number = 0;
  const openSocket = () => {
    const messages = script[number++] ?? null;
    const connection = number;
    const socket = {
      readyState: 0,
      send: (content) => sent.push([connection, encode(content)]),
      close() {
        if (socket.readyState === 3) return;
        socket.readyState = 3;
        setTimeout(() => socket.onclose?.());
      },
    };
    setTimeout(async () => {
      if (messages === null) {
        socket.onerror?.();
        return;
      }
      socket.readyState = 1;
      socket.onopen();
      for (const message of messages) {
        await new Promise((resolve) => setTimeout(resolve, 30));
        if (socket.readyState === 1) socket.onmessage({ data: decode(message).buffer });
      }
      await new Promise((resolve) => setTimeout(resolve, 60));
      socket.close();
    });
    return socket;
  };
  const store = new Store("test", null);
  const client = new Client({
    url: "",
    token: "token",
    store,
    load: async () => TRAINER,
    tell: (what) => told.push(what),
    openSocket,
  });
  client.sleep = async () => {
    if (number >= script.length) client.isStopped = true;
  };
  let ending;
  try {
    if (knocks) await client.knock();
    ending = await client.run("a page", null);
  } catch (error) {
    ending = `${error.message}${error.isFinal ? ", for good" : ""}`;
  }
  await client.busy;
  return { sent, told, ending, kept: await store.list(""), canTry: client.model !== null };
}

const TRAINER = {
  shapes: new Map([["weight_0", [2]]]),
  inputShape: [1],
  size: 1,
  check() {},
  async train({ arrays }) {
    TRAINER.numTrained = (TRAINER.numTrained ?? 0) + 1;
    const deltas = new Map([["weight_0", { data: arrays.get("weight_0").data.map(() => 1), shape: [2] }]]);
    return { header: { num_trained: 2, loss_sum: 1, seconds: TRAINER.numTrained }, arrays: deltas };
  },
  async measure(weights, x, y) {
    return { num: y.length, correct: 1, loss_sum: 0.5 };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: what, ...given } = JSON.parse(line);
  console.log(JSON.stringify((await DOES[what](given)) ?? null));
}
