// A client of live rounds (docs/live.md): connects, does what it is asked, and comes back when a connection is lost. It
// does what `launch/live/join.py` does, and knows nothing of the page that shows it.

import { JoinError, Stopped } from "./errors.js";
import { countOf, MOST_BYTES, pack, unpack, VERSION } from "./messages.js";
import { sha256 } from "./sha256.js";

const [FIRST_WAIT_S, LONGEST_WAIT_S] = [0.2, 5]; // between two attempts to connect
const GIVE_UP_AFTER_S = 600;
const NAMED = ["run", "number", "client", "file", "task"]; // what an answer repeats of its task

export class Client {
  // `load` makes a Trainer of the bytes of a file. `tell(what, details)` hears what happens:
  // connected, lost {seconds}, welcome {...}, started {type, round, steps}, step {...}, answered {...}, done {text}.
  // `openSocket` and `now`, in seconds, are the browser's.
  constructor({
    url,
    token,
    store,
    load,
    tell,
    openSocket = (address) => new WebSocket(address),
    now = () => performance.now() / 1000,
  }) {
    Object.assign(this, { url, token, store, load, tell, openSocket, now });
    this.welcome = null;
    this.examples = null; // {trainX, trainY, testX, testY}
    this.columns = null; // the digest of the description that own examples were read by
    this.whose = ""; // the run and seat that a part was dealt by
    this.trainers = new Map(); // by the SHA-256 of their file
    this.weights = { digest: "", arrays: new Map() }; // the last that the server sent
    this.personal = null; // weights that were tuned here
    this.works = new Set();
    this.busy = Promise.resolve(); // the end of the last work: one at a time
    this.isStopped = false;
    this.isErased = false; // whether nothing is kept any more
    this.bytes = { down: 0, up: 0 };
  }

  // Throws a JoinError if the server would not let it join.
  async knock() {
    await this.askFirst({ type: "knock" }, "known");
  }

  // What examples of one's own must be.
  async describe() {
    return (await this.askFirst({ type: "fetch", what: "description" }, "description")).description;
  }

  // The header of what is answered to a question in a connection of its own, before it joins. Throws a JoinError.
  async askFirst(question, wanted) {
    const socket = await this.connect();
    const opening = new Promise((resolve, reject) => {
      socket.onmessage = ({ data }) => {
        try {
          resolve(this.open(data).header);
        } catch (error) {
          reject(error);
        }
      };
      socket.onclose = () => reject(new JoinError("no live run answers there"));
    });
    try {
      await this.send(socket, { ...question, token: this.token, key: await this.findKey() });
      const header = await opening;
      if (header.type === "refused") throw new JoinError(header.reason, header.is_final);
      if (header.type !== wanted) throw new JoinError(`the server does not answer "${question.type}"`);
      return header;
    } finally {
      socket.onclose = null;
      socket.close();
    }
  }

  // Takes part until the run is over, or `stop` is called: "done" or "stopped". Throws a JoinError if it cannot go on.
  // `own` is {examples, columns} of one's own examples, else null.
  async run(name, own) {
    this.name = name;
    if (own) Object.assign(this, own);
    this.isStopped = false;
    this.heard = this.now(); // when a server last answered
    for (let wait = FIRST_WAIT_S; ; wait = Math.min(2 * wait, LONGEST_WAIT_S)) {
      this.welcome = null;
      const ending = await this.converse();
      if (ending === "done") await this.erase();
      if (ending) return ending;
      if (this.welcome) wait = FIRST_WAIT_S;
      if (this.now() - this.heard >= GIVE_UP_AFTER_S)
        throw new JoinError(`no live run has answered for ${GIVE_UP_AFTER_S / 60} minutes`);
      this.tell("lost", { seconds: wait });
      await this.sleep(wait);
      if (this.isStopped) return "stopped";
    }
  }

  // Nothing stays in the browser. What is in memory does, so that the last model can be tried.
  async erase() {
    this.endWorks(() => true);
    await this.busy;
    this.isErased = await this.store.forget().then(
      () => true,
      () => false,
    );
  }

  // Leaves the run for good: nothing of it stays.
  async forget() {
    this.stop();
    await this.busy;
    await this.store.forget();
    [this.examples, this.personal] = [null, null];
    this.weights = { digest: "", arrays: new Map() };
    this.trainers.clear();
  }

  // Leaves the run for now; the seat stays.
  stop() {
    this.isStopped = true;
    this.endWorks(() => true);
    this.wake();
    if (this.socket?.readyState !== 1) return;
    this.send(this.socket, { type: "leave", reason: "stopped" });
    this.socket.close();
  }

  // Tries to connect at once: the network is back, or the page is looked at again.
  wake() {
    this.endSleep?.();
  }

  sleep(seconds) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, 1000 * seconds);
      this.endSleep = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async findKey() {
    let key = await this.store.get("key");
    if (!/^[0-9a-f]{64}$/.test(key ?? "")) {
      key = drawKey();
      await this.store.set("key", key);
    }
    return key;
  }

  // An open socket; a JoinError if there is none.
  connect() {
    return new Promise((resolve, reject) => {
      const socket = this.openSocket(this.url);
      socket.binaryType = "arraybuffer";
      socket.onopen = () => resolve(socket);
      socket.onerror = socket.onclose = () => reject(new JoinError("no live run answers there"));
    });
  }

  // All that is said in one connection: "done", "stopped", or "" when it is lost. Throws a JoinError.
  async converse() {
    [this.fetched, this.tasks] = [new Set(), new Map()];
    let socket;
    try {
      socket = this.socket = await this.connect();
    } catch {
      return this.isStopped ? "stopped" : "";
    }
    let [doing, ending, failure] = [Promise.resolve(), "", null];
    this.fail = (error) => {
      failure ??=
        error instanceof JoinError ? error : new JoinError(`the task cannot be done here: ${error.message ?? error}`);
      this.endWorks(() => true);
      if (socket.readyState === 1) this.send(socket, { type: "leave", reason: "stopped" });
      socket.close();
    };
    const closed = new Promise((resolve) => (socket.onclose = resolve));
    socket.onerror = null;
    socket.onmessage = ({ data }) => {
      doing = doing
        .then(async () => {
          if (failure || ending) return;
          if (await this.take(socket, this.open(data))) ending = "done";
        })
        .catch(this.fail);
    };
    try {
      await this.join(socket);
    } catch (error) {
      this.fail(error);
    }
    await closed;
    await doing;
    this.heard = this.now();
    if (failure) throw failure;
    return ending || (this.isStopped ? "stopped" : "");
  }

  open(data) {
    if (!(data instanceof ArrayBuffer))
      throw new JoinError("the server sent text, and no message of live rounds; is the address right?");
    if (data.byteLength > MOST_BYTES)
      throw new JoinError(`the server sent more than ${MOST_BYTES >> 20} MB at once, and no more is taken`);
    this.bytes.down += data.byteLength;
    return unpack(data);
  }

  async send(socket, header, arrays) {
    const content = pack(header, arrays);
    this.bytes.up += content.byteLength;
    socket.send(content);
    return content.byteLength;
  }

  async join(socket) {
    const [numTrain, numTest] = this.columns ? [this.examples.trainY.length, this.examples.testY.length] : [0, 0];
    const header = {
      type: "join",
      protocol: VERSION,
      token: this.token,
      key: await this.findKey(),
      name: this.name,
      kind: "browser",
    };
    await this.send(socket, {
      ...header,
      num_train: numTrain,
      num_test: numTest,
      columns: this.columns,
      round_most_examples: null,
    });
    this.tell("connected", {});
  }

  // Does what a message asks for; whether the run is over.
  async take(socket, { header, arrays }) {
    const { type } = header;
    if (type === "refused") {
      if (header.is_final) throw new JoinError(header.reason, true);
      socket.close();
    } else if (type === "done") {
      this.tell("done", { text: header.text });
      return true;
    } else if (type === "welcome") {
      this.checkWelcome(header);
      const whose = `${header.run} ${header.client}`;
      if (header.deals && this.whose !== whose) [this.examples, this.whose] = [null, whose];
      if (!this.examples) await this.send(socket, { type: "fetch", what: "part" });
    } else if (type === "file") {
      await this.useFile(arrays.get("content").data);
    } else if (type === "part") {
      this.examples = readPart(arrays);
    } else if (["train", "evaluate", "fine_tune"].includes(type)) {
      this.tasks.set(type === "train", { header, arrays });
    } else if (type === "withdrawn") {
      this.endWorks((work) => work.task === header.task);
      for (const [isTrain, task] of this.tasks) if (task.header.task === header.task) this.tasks.delete(isTrain);
    }
    if (this.welcome) await this.startWorks(socket);
    return false;
  }

  checkWelcome(header) {
    if (header.deals && this.columns) throw new JoinError("this run deals the examples itself; load this page again");
    if (!header.deals && !this.columns)
      throw new JoinError("this run deals no examples; load this page again, and bring yours");
    if (!(header.file_bytes > 0 && header.file_bytes <= MOST_BYTES)) {
      throw new JoinError(`a training file of ${header.file_bytes} bytes, at most ${MOST_BYTES} are taken`);
    }
    this.welcome = header; // again, with another file, before a last task
    this.tell("welcome", header);
  }

  async useFile(content) {
    const digest = sha256(content);
    if (!this.fetched.has(digest))
      throw new JoinError("the server sent a training file that is not the one it told of");
    const trainer = await this.load(content);
    const told = new Map(this.welcome.weights.map(([name, shape]) => [name, String(shape)]));
    const isSame =
      told.size === trainer.shapes.size &&
      [...trainer.shapes].every(([name, shape]) => told.get(name) === String(shape));
    if (!isSame || String(trainer.inputShape) !== String(this.welcome.input_shape)) {
      throw new JoinError("the server sent a training file of other weights or inputs than it told of");
    }
    this.trainers.set(digest, trainer);
    for (const name of await this.store.list("file/"))
      if (!this.trainers.has(name.slice(5))) await this.store.remove(name);
    await this.store.set(`file/${digest}`, content);
  }

  // Begins each task for which all is there; fetches what is not, the training file before the first one.
  async startWorks(socket) {
    for (const file of [this.welcome.file, ...Array.from(this.tasks.values(), (task) => task.header.file)]) {
      if (this.trainers.has(file) || this.fetched.has(file)) continue;
      this.fetched.add(file);
      const content = await this.store.get(`file/${file}`);
      if (content && sha256(content) === file) await this.useFile(content);
      else await this.send(socket, { type: "fetch", what: "file", file });
    }
    for (const [isTrain, task] of [...this.tasks]) {
      const trainer = this.trainers.get(task.header.file);
      if (!trainer || !this.examples) continue;
      this.tasks.delete(isTrain);
      const sent = this.welcome.weights
        .filter(([name]) => task.arrays.has(name))
        .map(([name]) => [name, task.arrays.get(name)]);
      if (sent.length) {
        this.weights = {
          digest: sha256(...sent.map(([, { data }]) => data)),
          arrays: new Map(sent),
          round: task.header.round,
        };
      } else if (task.header.digest !== this.weights.digest) {
        await this.send(socket, { type: "fetch", what: "weights", task: task.header.task }); // it comes again
        continue;
      }
      checkExamples(this.examples, trainer.size, this.welcome.num_classes);
      const whole = { header: task.header, arrays: new Map([...task.arrays, ...this.weights.arrays]) };
      trainer.check(whole, this.examples.trainY.length);
      this.begin(socket, whole, isTrain);
    }
  }

  begin(socket, task, isTrain) {
    const work = { task: task.header.task, isTrain, digest: this.digestTask(task), isStopped: false };
    // One on the same is not ended: it comes again after a connection was lost.
    this.endWorks((other) => other.isTrain === isTrain && other.digest !== work.digest);
    this.works.add(work);
    this.busy = this.busy.then(() => this.work(socket, task, work)).finally(() => this.works.delete(work));
  }

  endWorks(isMeant) {
    for (const work of this.works) if (isMeant(work)) work.isStopped = true;
  }

  async work(socket, task, work) {
    const begun = this.now();
    try {
      if (work.isStopped) return;
      this.tell("started", {
        type: task.header.type,
        round: task.header.round ?? this.welcome?.round,
        steps: task.header.steps ?? 0,
      });
      const [header, arrays, details] = await this.perform(task, work);
      const names = NAMED.filter((name) => name in task.header).map((name) => [name, task.header[name]]);
      const isOpen = socket.readyState === 1;
      const bytes = isOpen ? await this.send(socket, { ...header, ...Object.fromEntries(names) }, arrays) : 0;
      this.tell("answered", {
        type: header.type,
        isSent: isOpen,
        bytes,
        seconds: this.now() - begun,
        round: task.header.round,
        ...details,
      });
    } catch (error) {
      if (!(error instanceof Stopped)) this.fail(error);
    }
  }

  // [header, arrays of the answer, details for the page]. Throws Stopped.
  async perform(task, work) {
    const trainer = this.trainers.get(task.header.file);
    const { testX, testY } = this.examples;
    const onStep = (step, steps, loss) => this.tell("step", { step, steps, loss });
    if (task.header.type === "evaluate") {
      const sums = await trainer.measure(task.arrays, testX, testY, work);
      return [{ type: "measured", ...sums }, new Map(), { sums }];
    }
    if (task.header.type === "fine_tune") {
      const before = await trainer.measure(task.arrays, testX, testY, work);
      const { arrays } = await trainer.train(task, this.examples, work, onStep);
      const personal = new Map();
      for (const [name, { data, shape }] of arrays) {
        const start = task.arrays.get(name).data;
        personal.set(name, { data: data.map((delta, i) => start[i] + delta), shape });
      }
      const after = await trainer.measure(personal, testX, testY, work);
      if (task.header.is_last) this.personal = { file: task.header.file, arrays: personal };
      return [{ type: "tuned", before, after }, new Map(), { before, after }];
    }
    const kept = await this.store.get("answer");
    if (kept?.digest === work.digest)
      return [{ type: "answer", ...kept.header }, kept.arrays, { ...kept.header, isAgain: true }];
    const { header, arrays } = await trainer.train(task, this.examples, work, onStep);
    await this.store.set("answer", { digest: work.digest, header, arrays });
    return [{ type: "answer", ...header }, arrays, header];
  }

  // What names all that a task asks for, whatever its id: file, weights, orders, rate, steps, and the examples.
  digestTask({ header, arrays }) {
    const { type, file, learning_rate: rate, steps, batch_size: size } = header;
    const { trainX, trainY } = this.examples;
    this.examples.digest ??= sha256(trainX, trainY);
    const said = JSON.stringify([type, file, rate, steps, size, [...arrays.keys()], this.examples.digest]);
    return sha256(new TextEncoder().encode(said), ...Array.from(arrays.values(), ({ data }) => data));
  }

  // What the model that it has makes of examples: `measure` of its own test part, the logits of one.
  get model() {
    const file = this.personal?.file ?? this.welcome?.file;
    const weights = this.personal?.arrays ?? this.weights.arrays;
    const trainer = this.trainers.get(file);
    return trainer && weights.size ? { trainer, weights } : null;
  }

  // One at a time with the works.
  useModel(action) {
    const result = this.busy.then(async () => (this.model ? action(this.model) : null));
    this.busy = result.catch(() => {});
    return result;
  }

  measureOwn() {
    const isTuned = this.personal !== null;
    return this.useModel(async ({ trainer, weights }) => {
      return { isTuned, ...(await trainer.measure(weights, this.examples.testX, this.examples.testY, {})) };
    });
  }

  infer(x) {
    return this.useModel(async ({ trainer, weights }) => {
      await trainer.setWeights(weights);
      return trainer.infer(x);
    });
  }
}

// 64 hex digits.
function drawKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function readPart(arrays) {
  const [trainX, trainY, testX, testY] = ["train_x", "train_y", "test_x", "test_y"].map((name) => arrays.get(name));
  for (const [x, y] of [
    [trainX, trainY],
    [testX, testY],
  ]) {
    const isPair =
      x?.data instanceof Float32Array &&
      y?.data instanceof Int32Array &&
      y.shape.length === 1 &&
      x.shape[0] === y.shape[0];
    if (!isPair) throw new JoinError("the server sent examples that are none");
  }
  return {
    trainX: trainX.data,
    trainY: trainY.data,
    testX: testX.data,
    testY: testY.data,
    shape: trainX.shape.slice(1),
  };
}

// Throws a JoinError unless the run's file takes them. An axis of size 1 more or less is no other shape.
function checkExamples({ trainX, trainY, testX, testY, shape }, size, numClasses) {
  const fits = (x, y) => x.length === y.length * size && y.every((label) => label >= 0 && label < numClasses);
  if ((shape && countOf(shape) !== size) || !fits(trainX, trainY) || !fits(testX, testY)) {
    throw new JoinError("the examples or their labels do not fit the run's");
  }
}
