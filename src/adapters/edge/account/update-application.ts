import { z } from "zod";
import { ApplicationUpdateRequest, ApplicationUpdateResponse } from "../contract/application.ts";
import { asWritten } from "../contract/as-written.ts";
import { checkRequest } from "../transport/check-request.ts";
import type { EdgeCall } from "../transport/edge-call.ts";
import { PathText, toSegment } from "../transport/path-segment.ts";
import { readAnswer } from "../transport/read-answer.ts";
import type { EdgeTransport } from "../transport/transport.ts";

const Params = z.strictObject({ appId: PathText, request: asWritten(ApplicationUpdateRequest) });

/**
 * Replaces an application's whole configuration; platform API spec 4.5. Members that the request leaves out are
 * reset.
 */
export async function updateApplication(
  transport: EdgeTransport,
  params: { appId: string; request: ApplicationUpdateRequest },
  signal?: AbortSignal,
): Promise<ApplicationUpdateResponse> {
  const { appId, request } = checkRequest("update-application", Params, params);
  const path = `/mc/apps/${toSegment(appId)}`;
  const call: EdgeCall = {
    operation: "update-application",
    method: "PUT",
    path,
    body: request,
    expects: "json",
  };
  return readAnswer(ApplicationUpdateResponse, call, await transport.request(call, signal));
}
