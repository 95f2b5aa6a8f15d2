/** The probes /livez and /readyz. */

import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { toError } from "#lib/errors.ts";
import { within } from "#lib/waiting.ts";
import { HEALTH_STATES, type HealthState } from "#model/kinds.ts";

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

interface Readiness extends Health {
  readonly checks: Readonly<Record<string, Health>>;
}

interface ReadinessOptions {
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

const LIVENESS = {
  tags: ["Service"],
  summary: "Check whether this process is alive",
  response: { 200: z.object({ state: z.literal("ok"), uptimeSeconds: z.int() }) },
};

/** Answers without any check. If this depended on another part, an outage of that part would restart every replica. */
export function addLivez(app: FastifyInstance): void {
  app.get("/livez", { config: { access: "public", isProbe: true }, schema: LIVENESS }, () => ({
    state: "ok",
    uptimeSeconds: Math.floor(process.uptime()),
  }));
}

const HealthSchema = z.object({ state: z.enum(HEALTH_STATES), detail: z.string().optional() });
const ReadinessAnswer = HealthSchema.extend({ checks: z.record(z.string(), HealthSchema) });
const READINESS = {
  tags: ["Service"],
  summary: "Check whether this process can do its work (503 if it cannot)",
  response: { 200: ReadinessAnswer, 503: ReadinessAnswer },
};

/** Answers 200 while the service can work, also when degraded, and 503 while a required part is failing. */
export function addReadyz(app: FastifyInstance, readReadiness: () => Promise<Readiness>): void {
  app.get(
    "/readyz",
    { config: { access: "public", isProbe: true }, schema: READINESS },
    async (_request, reply) => {
      const readiness = await readReadiness();
      return reply.code(readiness.state === "failing" ? 503 : 200).send(readiness);
    },
  );
}
