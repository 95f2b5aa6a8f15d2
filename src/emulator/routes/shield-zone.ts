import type { Call, EmulatorContext } from "../emulator-context.ts";
import { BODY_MISTAKES, readJson } from "../read-json.ts";
import { failureBlock, problem, type Reply, validationProblem } from "../reply.ts";
import type { ZoneStore } from "../zone-store.ts";
import { ANY_JSON } from "./media-types.ts";

const MAX_INT32 = 2_147_483_647;

/** Returns the requested zone, extended to the present; `undefined` when there is no such zone. */
export function findZone(
  context: EmulatorContext,
  call: Call,
): { store: ZoneStore | undefined; id: number } | { refusal: Reply } {
  const text = call.params["shieldZoneId"] ?? "";
  const id = /^-?\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(id) || Math.abs(id) > MAX_INT32) {
    return {
      refusal: validationProblem({
        shieldZoneId: [`The value '${text}' is not valid: shieldZoneId must be a 32-bit integer.`],
      }),
    };
  }
  const store = context.stores.get(id);
  store?.extendTo(context.now());
  return { store, id };
}

/** Returns the block with which the platform answers an unknown or foreign zone, with HTTP 202. */
export function unknownZoneBlock() {
  return failureBlock(
    202,
    "not_found_or_unauthorised_access.shieldzone",
    "The Shield Zone was not found, or access to it is not authorised.",
  );
}

/** Returns the status block of a success; a switch may leave it out (`{}`). */
export function successBlock(
  context: EmulatorContext,
  name: "errorResponse" | "error",
): Record<string, unknown> {
  if (context.switches.errorResponse === "absent") return {};
  const isNull = context.switches.errorResponse === "null";
  return { [name]: isNull ? null : { statusCode: 0, success: false, message: null, errorKey: null } };
}

/** Returns the JSON of a body with one of the three accepted media types, or the platform's refusal. */
export function readJsonBody(call: Call): { value: unknown } | { refusal: Reply } {
  const read = readJson(call, ANY_JSON);
  if ("value" in read) return read;
  if (read.mistake === "media type") return { refusal: problem(415) };
  return { refusal: validationProblem({ $: [BODY_MISTAKES[read.mistake]] }) };
}
