import { isDeepStrictEqual } from "node:util";
import root from "otlp-protobuf/build/src/generated/root.js";
import { type Arrived, type Receiver, startReceiver } from "./receiver.ts";

interface MessageType {
  fromObject(object: object): unknown;
  toObject(message: unknown, options: { readonly longs: StringConstructor }): unknown;
  encode(message: unknown): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
}
interface Root {
  readonly opentelemetry: {
    readonly proto: {
      readonly collector: {
        readonly logs: {
          readonly v1: Readonly<
            Record<"ExportLogsServiceRequest" | "ExportLogsServiceResponse", MessageType>
          >;
        };
      };
    };
  };
}

/** The definitions of the OpenTelemetry protocol, as its own package generated them. Their types name no members. */
const { ExportLogsServiceRequest, ExportLogsServiceResponse } = (root as unknown as Root).opentelemetry.proto
  .collector.logs.v1;

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string };
}
interface LogsRequest {
  readonly resourceLogs: readonly {
    readonly scopeLogs: readonly {
      readonly logRecords: readonly {
        readonly body: { readonly stringValue: string };
        readonly attributes: readonly Attribute[];
      }[];
    }[];
  }[];
}

/** Decodes through the definitions. A member that they do not have would be lost, so it is refused. */
function decode(text: string): LogsRequest {
  const sent: unknown = JSON.parse(text);
  const message = ExportLogsServiceRequest.fromObject(sent as object);
  const bytes = ExportLogsServiceRequest.encode(message).finish();
  const decoded = ExportLogsServiceRequest.toObject(ExportLogsServiceRequest.decode(bytes), {
    longs: String,
  });
  if (!isDeepStrictEqual(decoded, sent))
    throw new Error("the request has members that the protocol does not have");
  return decoded as LogsRequest;
}

/** An OTLP/HTTP receiver of logs in JSON. */
export function startOtlpReceiver({
  authorization,
}: {
  readonly authorization?: string;
} = {}): Promise<Receiver> {
  return startReceiver({
    failure: (status, reason = "failure") => ({ code: status === 400 ? 3 : 14, message: reason }),
    answer({ path, headers }) {
      if (authorization !== undefined && headers.authorization !== authorization)
        return { status: 401, body: { code: 16, message: "wrong credentials" } };
      if (path !== "/v1/logs") return { status: 404, body: "404 page not found" };
      return headers["content-type"] === "application/json" ? null : { status: 415, body: "unsupported" };
    },
    read: ({ text }) =>
      decode(text).resourceLogs.flatMap(({ scopeLogs }) =>
        scopeLogs.flatMap(({ logRecords }) =>
          logRecords.map(({ body, attributes }): Arrived => {
            const uid = attributes.find(({ key }) => key === "log.record.uid");
            return { id: uid?.value.stringValue ?? "", body: JSON.parse(body.stringValue) };
          }),
        ),
      ),
    take(events, { refused, postponed, store }) {
      if (events.some(({ id }) => postponed.has(id)))
        return { status: 503, body: { code: 14, message: "busy" } };
      const rejected = events.filter(({ id }) => refused.has(id)).length;
      for (const event of events) if (!refused.has(event.id)) store(event);
      const partialSuccess = { rejectedLogRecords: rejected, errorMessage: "record is invalid" };
      const answer = ExportLogsServiceResponse.fromObject(rejected === 0 ? {} : { partialSuccess });
      return { status: 200, body: ExportLogsServiceResponse.toObject(answer, { longs: String }) };
    },
  });
}
