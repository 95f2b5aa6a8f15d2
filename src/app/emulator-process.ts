import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { childEnvironment } from "#lib/child-environment.ts";
import { toError } from "#lib/errors.ts";
import { createSecret, type Secret } from "#lib/secret.ts";

const Ready = z.object({ type: z.literal("ready"), url: z.string(), accessKey: z.string() });
const STOP_GRACE_MS = 2_000;

export interface EmulatorProcess {
  readonly url: string;
  readonly accessKey: Secret;
  stop(): Promise<void>;
}

/**
 * Starts `longwatch emulator` in a process of its own, so that the service's memory and event loop are as with the real
 * platform. The emulator ends with this process, also after kill -9, and ignores Ctrl-C. Generating its history takes
 * seconds; `stopping` cancels that.
 */
export async function startEmulatorProcess(
  flags: readonly string[],
  onExit: () => void,
  stopping?: AbortSignal,
): Promise<EmulatorProcess> {
  stopping?.throwIfAborted();
  const main = fileURLToPath(new URL("../main.ts", import.meta.url));
  const child = fork(main, ["emulator", ...flags], {
    detached: true,
    env: childEnvironment(),
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    // A process that failed to start emits no exit event.
    child.on("error", () => {
      if (child.pid === undefined) resolve();
    });
  });
  let isStopping = false;
  const stop = async () => {
    isStopping = true;
    if (child.connected) child.disconnect();
    const force = setTimeout(() => child.kill("SIGKILL"), STOP_GRACE_MS);
    await exited;
    clearTimeout(force);
  };
  const ready = new Promise<z.infer<typeof Ready>>((resolve, reject) => {
    child.once("message", (message) => {
      const ready = Ready.safeParse(message);
      if (ready.success) resolve(ready.data);
      else
        reject(new Error("the emulator said something else than that it is ready", { cause: ready.error }));
    });
    child.once("error", reject);
    void exited.then(() => reject(new Error("the emulator ended before it was ready")));
    stopping?.addEventListener("abort", () => reject(toError(stopping.reason)), { once: true });
  });
  try {
    const { url, accessKey } = await ready;
    void exited.then(() => {
      if (!isStopping) onExit();
    });
    return { url, accessKey: createSecret(accessKey), stop };
  } catch (thrown) {
    await stop();
    throw thrown;
  }
}
