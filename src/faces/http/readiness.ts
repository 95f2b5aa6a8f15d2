import { toError } from "#lib/errors.ts";
import { within } from "#lib/waiting.ts";
import type { HealthState } from "#model/kinds.ts";

export interface Health {
  readonly state: HealthState;
  /** May be public: it contains no SQL, no address and no text of an error. */
  readonly detail?: string;
}

export interface HealthCheck {
  readonly name: string;
  /** True if the service cannot work without it: a check that throws or is late is then failing, else degraded. */
  readonly isRequired: boolean;
  check(): Promise<Health>;
}

export interface Readiness extends Health {
  readonly checks: Readonly<Record<string, Health>>;
}

export interface ReadinessOptions {
  readonly checks: readonly HealthCheck[];
  readonly timeoutMs: number;
  readonly onError: (name: string, error: Error) => void;
}

/** Runs all checks at once and returns the worst status. Concurrent probes share one answer. */
export function createReadiness({ checks, timeoutMs, onError }: ReadinessOptions): () => Promise<Readiness> {
  const probes = checks.map((check) => createProbe(check, timeoutMs, onError));
  let asking: Promise<Readiness> | null = null;

  async function ask(): Promise<Readiness> {
    const healths = await Promise.all(probes.map((probe) => probe()));
    const state = (["failing", "degraded"] as const).find((bad) => healths.some((h) => h.state === bad));
    return {
      state: state ?? "ok",
      checks: Object.fromEntries(
        checks.map(({ name }, index) => [name, healths[index] ?? { state: "failing" }]),
      ),
    };
  }

  return () => {
    asking ??= ask().finally(() => {
      asking = null;
    });
    return asking;
  };
}

function createProbe(
  check: HealthCheck,
  timeoutMs: number,
  onError: ReadinessOptions["onError"],
): () => Promise<Health> {
  const bad = check.isRequired ? "failing" : "degraded";
  let pending: Promise<Health> | null = null;

  async function ask(): Promise<Health> {
    try {
      return await check.check();
    } catch (thrown) {
      onError(check.name, toError(thrown));
      return { state: bad, detail: "the check failed; the log says why" };
    } finally {
      pending = null;
    }
  }

  return async () => {
    // A hanging check is not started again before it has ended, so that probes do not pile up in a connection pool.
    pending ??= ask();
    let health: Health = { state: bad, detail: `the check did not end within ${timeoutMs} ms` };
    await within(
      pending.then((answer) => {
        health = answer;
      }),
      timeoutMs,
    );
    return health;
  };
}
