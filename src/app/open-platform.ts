import { fork } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { accountsOf, type Config, type OpenAccount, requireAccounts } from "#config/config.ts";
import { toError } from "#lib/errors.ts";
import type { Log } from "#lib/log.ts";
import { childEnvironment, type StopStack } from "#lib/process.ts";
import { createSecret, type Secret } from "#lib/secret.ts";
import { DEFAULT_ACCOUNT } from "#model/zones.ts";
import { interleave } from "#store/queue/schedule.ts";

const EMULATED_ZONES = [101, 102] as const;
/** The history of a demonstration is copied in seconds. No other client uses this emulator, so the rate may be high. */
const EMULATED_REQUESTS_PER_SECOND = 1_000;
const ATTACK_AFTER_MS = 60_000;
const SCAN_AFTER_MS = 150_000;
const ATTACKED = { zoneId: 101, ruleId: "942100" } as const;
const EMULATED_ATTACK = `zone=${ATTACKED.zoneId},rule=${ATTACKED.ruleId},start=+${ATTACK_AFTER_MS / 1_000}s,duration=5m,rate=12/s`;
/** A scan that begins after the attack on one rule. No single rule shows it. */
const EMULATED_SCAN = `kind=scanner,zone=102,start=+${SCAN_AFTER_MS / 1_000}s,duration=5m,rate=1/s`;
/** Four scanners that overlap, once: each sends 300 events on 40 rules, and one begins every twelve minutes. */
const EMULATED_SCANNERS = `kind=four-scanners,zone=101,start=+15m,duration=108m,rate=4.2/m`;
/** Rules that match what editors write. It began seven hours before the first start, so that it has lasted when it is judged. */
const EMULATED_MISFIRE = "kind=misfire-back-office,zone=102,start=-7h,duration=24h,rate=4/m";

export interface Platform {
  readonly accounts: readonly [OpenAccount, ...OpenAccount[]];
  /** The address of the first account. */
  readonly url: string;
  /** The zones of all accounts. */
  readonly zoneIds: readonly number[];
  readonly isEmulated: boolean;
  /** The attack that this start has scripted; null if the platform is not emulated. */
  readonly attack: { readonly zoneId: number; readonly ruleId: string; readonly startsAtMs: number } | null;
}

/** Opens the configured accounts of the platform, or starts an emulator. */
export async function openPlatform(
  config: Pick<Config, "edge" | "alerting" | "rereadKey" | "dataDir">,
  log: Log,
  stack: StopStack,
  stopping: AbortSignal,
): Promise<Platform> {
  if (accountsOf(config).length > 0) {
    const accounts = requireAccounts(config);
    // By turns, so that the jobs of one tick do not wait for the budget of one account.
    const zoneIds = interleave(accounts.map((account) => account.zoneIds));
    return { accounts, url: accounts[0].url, zoneIds, isEmulated: false, attack: null };
  }
  const state = path.join(config.dataDir, "emulator.json");
  const flags = [
    "--zones",
    EMULATED_ZONES.join(","),
    "--state",
    state,
    "--attack",
    EMULATED_ATTACK,
    "--attack",
    EMULATED_SCAN,
    "--attack",
    EMULATED_SCANNERS,
    // A later start would change hours that are sealed.
    ...(existsSync(state) ? [] : ["--attack", EMULATED_MISFIRE]),
  ];
  const onExit = () => log.error({ action: "start the service again" }, "emulator ended unexpectedly");
  const emulator = await startEmulatorProcess(flags, onExit, stopping);
  stack.defer("emulator", () => emulator.stop());
  const startsAtMs = Date.now() + ATTACK_AFTER_MS;
  const account: OpenAccount = {
    name: DEFAULT_ACCOUNT,
    url: emulator.url,
    key: emulator.accessKey,
    zoneIds: EMULATED_ZONES,
    requestsPerSecond: EMULATED_REQUESTS_PER_SECOND,
    rereadKey: () => "same",
  };
  const attack = { ...ATTACKED, startsAtMs };
  return { accounts: [account], url: account.url, zoneIds: EMULATED_ZONES, isEmulated: true, attack };
}

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
