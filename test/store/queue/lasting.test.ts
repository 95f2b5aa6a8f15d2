import { expect, test } from "vitest";
import { openLasting, type Part } from "#store/queue/lasting.ts";

const WAIT = { timeout: 20_000 };

/** Opens parts whose first `failures` connections fail, and records what was done with them, in order. */
function failingParts(failures: number, closes: () => Promise<void> = async () => {}) {
  const acts: string[] = [];
  let opened = 0;
  const open = (): Part & { readonly number: number } => {
    opened += 1;
    const number = opened;
    acts.push(`open ${number}`);
    return {
      number,
      on() {},
      waitUntilReady: async () => {
        if (number <= failures) throw new Error("not yet");
      },
      close() {
        acts.push(`close ${number}`);
        return closes();
      },
      disconnect: async () => void acts.push(`disconnect ${number}`),
    };
  };
  return { acts, open };
}

const ignore = () => {};

test("a part whose first connection fails is closed, and opened anew until one comes about", async () => {
  const { acts, open } = failingParts(2);
  const lasting = openLasting(open, ignore, 1);
  await expect(lasting.ready()).rejects.toThrow("not yet");
  await expect.poll(async () => (await lasting.ready().catch(ignore))?.number, WAIT).toBe(3);
  expect(acts).toEqual(["open 1", "close 1", "open 2", "close 2", "open 3"]);
});

test("one that is replaced ends by itself, and what is ready is the new one", async () => {
  const { acts, open } = failingParts(0);
  const lasting = openLasting(open, ignore, 1);
  lasting.replace();
  expect((await lasting.ready()).number).toBe(2);
  expect(acts).toEqual(["open 1", "open 2", "close 1"]);
});

test("one that cannot take leave of its store is disconnected, so that it stops trying to reach it", async () => {
  const { acts, open } = failingParts(0, () => Promise.reject(new Error("gone")));
  await openLasting(open, ignore, 1).close();
  expect(acts).toEqual(["open 1", "close 1", "disconnect 1"]);
});

test("once closed nothing is opened any more", async () => {
  const { acts, open } = failingParts(1);
  const lasting = openLasting(open, ignore, 1);
  await lasting.close();
  lasting.replace();
  await expect(lasting.ready()).rejects.toThrow("not yet");
  expect(acts).toEqual(["open 1", "close 1"]);
});
