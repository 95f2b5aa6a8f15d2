/** Opens the accounts of the platform: the request budget of each, over all replicas, and a client for all of them. */
import type { OpenAccount } from "#config/config.ts";
import { createDatabase, type Database } from "#db/client.ts";
import {
  endRefusal,
  MAX_PAUSE_MS,
  pauseBudget,
  pauseZone,
  type RequestBudget,
  takeTokens,
  toBudgetName,
} from "#db/ingest/request-budgets.ts";
import type { Secret } from "#lib/secret.ts";
import { findOwner } from "#model/zones.ts";
import { createSharedGate } from "#platform/budget/shared-gate.ts";
import type { RequestGate, RequestPriority } from "#platform/transport/call.ts";
import {
  type AttemptReport,
  createEdgeTransport,
  type EdgeTransport,
  type EdgeTransportOptions,
  routeByZone,
} from "#platform/transport/transport.ts";

const STATEMENT_TIMEOUT_MS = 2_000;
/** Further connections would not let more requests pass: a gate asks once at a time, and an answer takes a millisecond. */
const MOST_CONNECTIONS = 4;

type Budgeted = Pick<OpenAccount, "name" | "requestsPerSecond">;

/**
 * Returns the request budget of all replicas for an account. It holds half a second of the rate, so that there is no burst
 * after a start or an idle hour.
 */
export function toRequestBudget({ name, requestsPerSecond }: Budgeted): RequestBudget {
  return {
    name: toBudgetName(name),
    ratePerSecond: requestsPerSecond,
    burst: Math.max(2, requestsPerSecond / 2),
  };
}

export interface RequestGateParts {
  readonly databaseUrl: Secret;
  readonly accounts: readonly Budgeted[];
  readonly onWaited?: (ms: number, priority: RequestPriority) => void;
  /** Called with the error when Postgres stops answering for a budget, and with null when it answers for all again. */
  readonly onUnshared?: (error: unknown) => void;
}

interface OpenRequestGates {
  /** The gates, in the order of the accounts. */
  readonly gates: readonly RequestGate[];
  /** Closes the gates. Close the transports first. */
  close(): Promise<void>;
}

/**
 * Opens the limiters of one replica or command. They have their own connections, because the jobs that wait for them may
 * use all the others.
 */
export function openRequestGates(parts: RequestGateParts): OpenRequestGates {
  const { accounts, onWaited = () => undefined, onUnshared = () => undefined } = parts;
  const database = createDatabase({
    url: parts.databaseUrl.reveal(),
    max: Math.min(accounts.length + 1, MOST_CONNECTIONS),
    applicationName: "longwatch budget",
    onError: () => undefined,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    lockTimeoutMs: STATEMENT_TIMEOUT_MS,
    connectTimeoutMs: STATEMENT_TIMEOUT_MS,
    queryTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  const unshared = new Set<string>();
  const gates = accounts.map((account) =>
    openGate(database, toRequestBudget(account), {
      onWaited,
      onUnshared(error) {
        const before = unshared.size;
        if (error === null) unshared.delete(account.name);
        else unshared.add(account.name);
        if ((before === 0) !== (unshared.size === 0)) onUnshared(error);
      },
    }),
  );
  return {
    gates,
    async close() {
      for (const gate of gates) gate.close();
      await database.close();
    },
  };
}

/**
 * Callers with low priority leave half of the bucket, so that a normal caller finds a token at once. Without normal callers
 * they still get the whole rate: only tokens in the bucket are reserved.
 */
function openGate(
  { db }: Database,
  budget: RequestBudget,
  hooks: Required<Pick<RequestGateParts, "onWaited" | "onUnshared">>,
) {
  const reserves: Record<RequestPriority, number> = { normal: 0, low: budget.burst / 2 };
  return createSharedGate({
    ratePerSecond: budget.ratePerSecond,
    take: (atMost, priority) => takeTokens(db, budget, { atMost, reserve: reserves[priority] }),
    async pause(pauseMs, zoneId) {
      if (zoneId !== null) return { isForAll: await pauseZone(db, budget.name, { zoneId, pauseMs }) };
      await pauseBudget(db, budget.name, pauseMs);
      return { isForAll: true };
    },
    answered: (zoneId) => endRefusal(db, zoneId),
    maxPauseMs: MAX_PAUSE_MS,
    ...hooks,
  });
}

interface AccountsParts
  extends Omit<RequestGateParts, "accounts" | "databaseUrl">,
    Pick<EdgeTransportOptions, "timeoutMs" | "onWarning"> {
  /** Null: every request is admitted at once. */
  readonly databaseUrl: Secret | null;
  readonly accounts: readonly [OpenAccount, ...OpenAccount[]];
  readonly onAttempt?: (account: string, report: AttemptReport) => void;
}

/** Returns one transport over all accounts: each call has the key, the address and the budget of its zone's account. */
export function openAccounts(parts: AccountsParts): EdgeTransport {
  const { databaseUrl, accounts, timeoutMs, onWarning, onAttempt } = parts;
  const opened = databaseUrl === null ? null : openRequestGates({ ...parts, databaseUrl });
  const open = ({ name, url, key, zoneIds }: OpenAccount, index: number) => ({
    zoneIds,
    transport: createEdgeTransport({
      baseUrl: url,
      accessKey: key,
      gate: opened?.gates[index],
      timeoutMs,
      onWarning,
      onAttempt: (report) => onAttempt?.(name, report),
    }),
  });
  const [first, ...others] = accounts;
  const all = [open(first, 0), ...others.map((one, index) => open(one, index + 1))] as const;
  return {
    ...routeByZone((zoneId) => findOwner(all, zoneId).transport),
    async close() {
      await Promise.all(all.map(({ transport }) => transport.close()));
      await opened?.close();
    },
  };
}
