import { z } from "zod";
import { checkRequest } from "./check-request.ts";
import { ApplicationUpdateRequest, ApplicationUpdateResponse } from "./contract/application.ts";
import type { EdgeCall } from "./edge-call.ts";
import { PathText, toSegment } from "./path-segment.ts";
import { readAnswer } from "./read-answer.ts";
import type { EdgeTransport } from "./transport.ts";

const Params = z.strictObject({ appId: PathText, request: ApplicationUpdateRequest });

/** Replaces an application's whole configuration; platform API spec 4.5. What the request leaves out is reset. */
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
