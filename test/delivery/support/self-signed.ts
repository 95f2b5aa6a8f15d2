import { generateKeyPairSync, sign } from "node:crypto";

/** One DER element. */
function der(tag: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  const { length } = body;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
}

const sequence = (...content: readonly Buffer[]) => der(0x30, ...content);
const oid = (hex: string) => der(0x06, Buffer.from(hex, "hex"));
const utcTime = (at: Date) =>
  der(0x17, Buffer.from(`${at.toISOString().replaceAll(/\D/g, "").slice(2, 14)}Z`));

/** A certificate for one host name, made for one test: nothing secret has to lie in the repository. */
export function createSelfSigned(hostname: string): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const ecdsaWithSha256 = sequence(oid("2a8648ce3d040302"));
  const name = sequence(der(0x31, sequence(oid("550403"), der(0x0c, Buffer.from(hostname)))));
  const altNames = der(0x04, sequence(der(0x82, Buffer.from(hostname))));
  const nowMs = Date.now();
  const day = 86_400_000;
  const certificate = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    name,
    sequence(utcTime(new Date(nowMs - day)), utcTime(new Date(nowMs + day))),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(sequence(oid("551d11"), altNames))),
  );
  const signature = der(0x03, Buffer.from([0]), sign("sha256", certificate, privateKey));
  const bytes = sequence(certificate, ecdsaWithSha256, signature);
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${bytes.toString("base64").replace(/(.{64})/g, "$1\n")}\n-----END CERTIFICATE-----\n`,
  };
}
