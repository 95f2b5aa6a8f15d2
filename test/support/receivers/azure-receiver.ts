import { gzipSync } from "node:zlib";
import { type Answer, type Arrived, type Received, type Receiver, startReceiver } from "./receiver.ts";

export interface AzureOptions {
  readonly tenantId: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly ruleId: string;
  readonly stream: string;
  /** What a token begins with. */
  readonly tokenPrefix?: string;
  readonly tokenLifeS?: number;
}

const COLUMNS = ["TimeGenerated", "LongwatchId", "Zone", "Rule", "Action", "Event"];
const MOST_BYTES = 1_000_000;
const MOST_FIELD_BYTES = 65_536;

/** The sign-in of Microsoft Entra and the Logs Ingestion API of Azure Monitor, with the limits of its documents. */
export async function startAzureReceiver({
  tenantId,
  clientId,
  clientSecret,
  ruleId,
  stream,
  tokenPrefix = "token",
  tokenLifeS = 3_599,
}: AzureOptions): Promise<Receiver & { readonly tokens: Set<string>; readonly issued: () => number }> {
  /** The tokens that are valid. */
  const tokens = new Set<string>();
  let issued = 0;

  function issue({ text, headers }: Received): Answer {
    const form = new URLSearchParams(text);
    if (headers["content-type"] !== "application/x-www-form-urlencoded")
      return { status: 400, body: { error: "invalid_request" } };
    if (form.get("scope") !== "https://monitor.azure.com/.default")
      return {
        status: 400,
        body: { error: "invalid_scope", error_description: "AADSTS70011: no such scope" },
      };
    if (form.get("client_id") !== clientId || form.get("client_secret") !== clientSecret) {
      const error_description = `AADSTS7000215: Invalid client secret ${form.get("client_secret")} provided.`;
      return { status: 401, body: { error: "invalid_client", error_description } };
    }
    issued += 1;
    const access_token = `${tokenPrefix}.${issued}`;
    tokens.add(access_token);
    return { status: 200, body: { token_type: "Bearer", expires_in: tokenLifeS, access_token } };
  }

  const receiver = await startReceiver({
    failure: (status, message = "failure") => ({
      error: { code: status === 413 ? "ContentLengthLimitExceeded" : "InvalidRequest", message },
    }),
    answer(request) {
      const { path, headers, query, text } = request;
      if (path === `/${tenantId}/oauth2/v2.0/token`) return issue(request);
      if (!tokens.has((headers.authorization ?? "").replace("Bearer ", "")))
        return { status: 401, body: { error: { code: "InvalidToken", message: "The token is not valid" } } };
      if (path !== `/dataCollectionRules/${ruleId}/streams/${stream}`)
        return { status: 404, body: { error: { code: "NotFound", message: "No such rule or stream" } } };
      if (query.get("api-version") !== "2023-01-01" || headers["content-type"] !== "application/json")
        return { status: 400, body: { error: { code: "InvalidApiVersion", message: "wrong request" } } };
      const sizes = [Buffer.byteLength(text), gzipSync(text).length];
      return Math.max(...sizes) > MOST_BYTES ? { status: 413, body: "too large" } : null;
    },
    read({ text }) {
      const rows = JSON.parse(text) as readonly Record<string, unknown>[];
      return rows.map((row): Arrived => {
        const names = Object.keys(row);
        if (names.join() !== COLUMNS.join()) throw new Error(`unknown columns ${names.join()}`);
        if (Number.isNaN(Date.parse(String(row["TimeGenerated"]))))
          throw new Error("TimeGenerated is invalid");
        for (const value of Object.values(row))
          if (Buffer.byteLength(JSON.stringify(value)) > MOST_FIELD_BYTES)
            throw new Error("a value would be cut");
        return { id: String(row["LongwatchId"]), body: row["Event"] };
      });
    },
    take(events, { refused, postponed, store }) {
      if (events.some(({ id }) => postponed.has(id)))
        return { status: 503, body: { error: { code: "ServerBusy", message: "busy" } } };
      if (events.some(({ id }) => refused.has(id)))
        return { status: 400, body: { error: { code: "InvalidRequest", message: "a row is invalid" } } };
      for (const event of events) store(event);
      return { status: 204, body: "" };
    },
  });
  return Object.assign(receiver, { tokens, issued: () => issued });
}
