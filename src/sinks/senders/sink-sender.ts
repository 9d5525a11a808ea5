import type { MessageFormat } from '../sink-rows.js';
import { patience } from '../../platform/patience.js';

/** Rows for a sink. The same rows have the same ID each time they are sent. */
export interface SinkMessage {
  id: string;
  /** Rows in the format of the sender, separated by line feeds. */
  body: string;
}

/** How long a sink may take for one message, and for the start of a connection. */
export const SEND_TIMEOUT = patience('a message to a sink', 60_000);
export const OPEN_TIMEOUT = patience('a connection to a sink', 15_000);

/** Sends messages to one sink, one after the other. */
export interface SinkSender {
  readonly format: MessageFormat;
  /** Resolves when the sink has stored the message. @throws SinkError or any other error */
  send(message: SinkMessage): Promise<void>;
  /** The ID of the last message that the sink has, if it can tell. */
  lastId?(): Promise<string | null>;
  close(): Promise<void>;
}

/** Why a sink did not take rows, with the remedy. */
export class SinkError extends Error {
  override readonly name = 'SinkError';
}

const LONGEST = 300;

/** Text of a server for an error: one line, cut. */
export function excerpt(text: string): string {
  const line = text.replace(/[\u0000-\u001f\u007f-\u009f\s]+/g, ' ').trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}
