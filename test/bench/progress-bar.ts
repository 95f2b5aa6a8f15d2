const WIDTH = 24;

/** A line that is written over, on a terminal; elsewhere a line each time another tenth is done. */
export function createProgressBar(stream: NodeJS.WriteStream): (done: number, what: string) => void {
  let tenth = -1;
  return (done, what) => {
    const share = Math.min(Math.max(done, 0), 1);
    const percent = `${Math.round(share * 100)}%`.padStart(4);
    if (stream.isTTY) {
      const bar = "#".repeat(Math.round(share * WIDTH)).padEnd(WIDTH, ".");
      stream.write(`\r\u001b[K${bar} ${percent} ${what}`.slice(0, stream.columns + 4));
      if (share === 1) stream.write("\n");
    } else if (Math.floor(share * 10) !== tenth) {
      tenth = Math.floor(share * 10);
      stream.write(`${percent} ${what}\n`);
    }
  };
}
