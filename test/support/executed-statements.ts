/** A statement that was executed. */
export interface Executed {
  application: string;
  text: string;
}

/**
 * Reads the messages that a client sends to Postgres on one connection (PostgreSQL documentation, 54.7).
 * @param executed gets each statement when it is executed
 * @returns what the bytes go to
 */
export function executedStatements(executed: Executed[]): (bytes: Buffer) => void {
  let waiting = Buffer.alloc(0);
  let application: string | null = null;
  const texts = new Map<string, string>();
  const portals = new Map<string, string>();
  const execute = (text: string) => executed.push({ application: application!, text });
  const onMessage = (type: string, body: Buffer) => {
    const words = body.toString('utf8').split('\0');
    if (type === 'Q') execute(words[0]!);
    else if (type === 'P') texts.set(words[0]!, words[1]!);
    else if (type === 'B') portals.set(words[0]!, texts.get(words[1]!)!);
    else if (type === 'E') execute(portals.get(words[0]!)!);
  };
  return (bytes) => {
    waiting = Buffer.concat([waiting, bytes]);
    for (;;) {
      // The startup message has no type.
      const start = application === null ? 0 : 1;
      if (waiting.length < start + 4) return;
      const end = start + waiting.readInt32BE(start);
      if (waiting.length < end) return;
      const body = waiting.subarray(start + 4, end);
      if (application === null) {
        const words = body.toString('latin1', 4).split('\0');
        application = words[words.indexOf('application_name') + 1] ?? '';
      } else onMessage(String.fromCharCode(waiting[0]!), body);
      waiting = waiting.subarray(end);
    }
  };
}
