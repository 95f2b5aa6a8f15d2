import { DnsAvailabilityRequest, DnsAvailabilityResponse } from "../contract/dns-availability.ts";
import { checkRequest } from "../transport/check-request.ts";
import type { EdgeCall } from "../transport/edge-call.ts";
import { readAnswer } from "../transport/read-answer.ts";
import type { EdgeTransport } from "../transport/transport.ts";

/** Returns whether a DNS zone name is still free, null if the platform does not say; platform API spec 4.3. A POST that changes nothing. */
export async function checkDnsZone(
  transport: EdgeTransport,
  params: DnsAvailabilityRequest,
  signal?: AbortSignal,
): Promise<DnsAvailabilityResponse> {
  const body = checkRequest("check-dns-zone", DnsAvailabilityRequest, params);
  const path = "/dnszone/checkavailability";
  const call: EdgeCall = {
    operation: "check-dns-zone",
    method: "POST",
    path,
    body,
    isReadOnly: true,
    expects: "json",
    mayBeEmpty: true,
  };
  return readAnswer(DnsAvailabilityResponse, call, await transport.request(call, signal));
}
