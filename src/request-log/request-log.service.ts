import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { describeFault } from '../database/database-fault.js';
import { Refusal } from '../refusal.js';
import { type CallLog, type CallOrigin, CallRecord } from './call-record.js';
import { FinishedCalls } from './finished-calls.js';
import { Journal } from './journal.js';
import type { JournalFile } from './journal-file.js';
import { encodeBegin, encodeEnd, encodeLine, encodeUsage } from './journal-line.js';
import { type BeginColumns, beginColumns, endColumns, type LogRow, rowOf, usageColumns } from './log-row.js';
import { LogWriter } from './log-writer.js';
import { NO_USAGE, type Usage } from './token-figures.js';
import { readUsage } from './usage-reader.js';

interface ReadCall {
  call: CallRecord;
  usage: Usage;
}

/** Keeps the records of calls under way and sees to it that each begun one becomes a row, whatever dies. */
@Injectable()
export class RequestLogService implements CallLog, OnApplicationShutdown {
  private readonly logger = new Logger('RequestLog');
  private readonly openCalls = new Set<CallRecord>();
  /** Calls that were begun and whose row the writer does not have yet, with what was journalled of their beginning. */
  private readonly unfinished = new Map<CallRecord, BeginColumns>();
  /** Calls that have ended in this turn of the event loop: their answers are read, and journalled as one, in the next. */
  private closed: CallRecord[] = [];

  constructor(
    private readonly journal: Journal,
    private readonly writer: LogWriter,
    private readonly finished: FinishedCalls,
  ) {}

  open(origin: CallOrigin): CallRecord {
    const call = new CallRecord(origin, this);
    this.openCalls.add(call);
    return call;
  }

  /** Calls whose record is not closed yet. */
  get openCount(): number {
    return this.openCalls.size;
  }

  /** Calls whose record is not closed yet, or whose answer is still being read. */
  get underWay(): number {
    return this.openCalls.size + this.unfinished.size;
  }

  begun(call: CallRecord): JournalFile {
    if (!this.journal.accepting) throw new Refusal('journal_unavailable');
    const begin = beginColumns(call.origin, call.origin.key);
    let file: JournalFile;
    try {
      file = this.journal.appendLines(encodeBegin(begin), 1, false);
    } catch (error) {
      throw new Refusal('journal_unavailable', { cause: error });
    }
    this.unfinished.set(call, begin);
    return file;
  }

  ended(call: CallRecord): JournalFile | null {
    return this.tryAppend(encodeEnd(call.origin.id, endColumns(call)), 1, call.origin.id);
  }

  durable(): Promise<void> | null {
    return this.journal.strict ? this.journal.sync() : null;
  }

  /** Ends the record's life. A call refused before it was dispatched leaves no row. */
  close(call: CallRecord): void {
    this.openCalls.delete(call);
    if (!call.begun) return;
    // A handler that settled without a verdict means this process gave the call up.
    if (call.outcome === null) call.end('interrupted');
    call.settled();
    if (this.closed.push(call) === 1) setImmediate(this.readClosed);
  }

  /** The verdict of calls the process is about to cut; what happens to their sockets afterwards is our own doing. */
  interruptOpenCalls(): void {
    for (const call of this.openCalls) call.end('interrupted');
  }

  async onApplicationShutdown(): Promise<void> {
    // The shutdown has waited for these; a row without figures is better than none before the next start.
    const calls = [...this.unfinished.keys()];
    for (const call of calls) if (call.outcome === null) call.end('interrupted');
    this.finish(calls.map((call) => ({ call, usage: NO_USAGE })));
    await this.writer.stop();
    await this.journal.close();
  }

  private readonly readClosed = (): void => {
    const calls = this.closed;
    this.closed = [];
    const read: ReadCall[] = [];
    for (const call of calls) {
      // Reading never fails: what is not certain is null.
      const usage = readUsage(call.contentType, call.contentEncoding, call.origin.endpoint, call.copy);
      if ('then' in usage) void usage.then((figures) => this.finish([{ call, usage: figures }]));
      else read.push({ call, usage });
    }
    this.finish(read);
  };

  /** Journals the last of these calls, in one write, and hands their rows to the writer, once. */
  private finish(calls: readonly ReadCall[]): void {
    const ended: (ReadCall & { row: LogRow; whole: boolean })[] = [];
    const lines: Buffer[] = [];
    for (const { call, usage } of calls) {
      const begin = this.unfinished.get(call);
      if (begin === undefined) continue;
      this.unfinished.delete(call);
      const read = usageColumns(call, usage);
      const row = rowOf(begin, endColumns(call), read);
      // An end that the journal could not take makes up for it here; and a row that memory has no place for waits there.
      const whole = this.writer.full || !call.endKept;
      lines.push(whole ? encodeLine({ t: 'R', ...row }) : encodeUsage(row.id, read));
      ended.push({ call, usage, row, whole });
    }
    if (ended.length === 0) return;
    const bytes = lines.length === 1 ? lines[0]! : Buffer.concat(lines);
    const file = this.tryAppend(bytes, lines.length, ended[0]!.row.id);
    for (const { call, usage, row, whole } of ended) {
      if (file === null) {
        this.writer.add(row, call.files, false);
      } else if (this.writer.full && whole) {
        this.writer.park(file);
        this.journal.release(call.files);
      } else {
        call.files.push(file);
        this.writer.add(row, call.files);
      }
      this.finished.tell(row, call, usage);
    }
  }

  private tryAppend(lines: Buffer, count: number, firstId: string): JournalFile | null {
    try {
      return this.journal.appendLines(lines, count, true);
    } catch (error) {
      // The calls have happened; their rows are still in memory and go to Postgres from there.
      const calls = count === 1 ? `call ${firstId}` : `${count} calls, ${firstId} the first,`;
      this.logger.error(`The end of ${calls} could not be journalled: ${describeFault(error)}`);
      return null;
    }
  }
}
