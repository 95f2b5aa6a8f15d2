import classes from "./advice-text.module.css";
import { Payload } from "./payload.tsx";

/** A text of the platform's AI, line by line, as plain text. */
export function AdviceText({ text }: { readonly text: string }) {
  return (
    <div className={classes["text"]}>
      {text.split(/\r?\n/).map((line, index) => (
        <div key={`${index}`} className={classes["line"]}>
          {line === "" ? null : <Payload prose text={line} />}
        </div>
      ))}
    </div>
  );
}
