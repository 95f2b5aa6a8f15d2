import { z } from "zod";
import { asWritten } from "../contract/as-written.ts";
import { HostnameKeyTypeRequest } from "../contract/hostname-key-type.ts";
import { Int32Id } from "../contract/int32.ts";
import { checkRequest } from "../transport/check-request.ts";
import type { EdgeTransport } from "../transport/transport.ts";

const Params = z.strictObject({ pullZoneId: Int32Id, request: asWritten(HostnameKeyTypeRequest) });

/** Changes the private key type of a hostname; platform API spec 4.2. Any 2xx is success, usually without a body. */
export async function setHostnameKeyType(
  transport: EdgeTransport,
  params: { pullZoneId: number; request: HostnameKeyTypeRequest },
  signal?: AbortSignal,
): Promise<void> {
  const { pullZoneId, request } = checkRequest("set-hostname-key-type", Params, params);
  await transport.request(
    {
      operation: "set-hostname-key-type",
      method: "POST",
      path: `/pullzone/${pullZoneId}/updatePrivateKeyType`,
      body: request,
      expects: "nothing",
    },
    signal,
  );
}
