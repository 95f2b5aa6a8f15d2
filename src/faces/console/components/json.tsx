import { Payload } from "./payload.tsx";

/** A value as JSON, line by line: what is hidden in its texts is spelled out, its own line breaks are not. */
export function Json({ of, label }: { readonly of: unknown; readonly label: string }) {
  return (
    <pre className="lw-code" tabIndex={0} aria-label={label}>
      {JSON.stringify(of, null, 2)
        .split("\n")
        .map((line, index) => (
          <div key={`${index}`}>
            <Payload text={line} none="" />
          </div>
        ))}
    </pre>
  );
}
