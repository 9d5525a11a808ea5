/** How a stream is divided into events. */
export interface StreamFraming {
  /**
   * The data of each event of bytes that start at an event. Of the last event only the start may be there.
   *
   * @returns null if the bytes are not in this framing
   */
  events(bytes: Buffer): string[] | null;
  /** The events of the end of a stream that starts anywhere. @returns null if the bytes are not in this framing */
  lastEvents(bytes: Buffer): LastEvents | null;
}

export interface LastEvents {
  /** The data of each whole event. */
  events: string[];
  /** The end of the data of the last event, if the event is larger than the bytes; else null. */
  broken: string | null;
}
