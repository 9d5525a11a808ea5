import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { describeError } from '../errors/describe-error.js';
import { GatewayError } from '../errors/gateway-error.js';
import { type CallLog, type CallOrigin, CallRecord } from './call-record.js';
import { FinishedCalls } from './finished-calls.js';
import { type Entry, Journal } from './journal/journal.js';
import type { JournalFile } from './journal/journal-file.js';
import { encodeLines, encodeRecord } from './journal/record-codec.js';
import type { LogRow } from './columns.js';
import { emptyRow, setBegin, setEnd, setUsage } from './log-row.js';
import { LogWriter } from './log-writer.js';
import { NO_USAGE, type Usage } from '../tokens/token-counts.js';
import { readUsage } from '../tokens/usage-reader.js';

interface ReadCall {
  call: CallRecord;
  usage: Usage;
}

/** Keeps the records of calls under way and sees to it that each begun one becomes a row, whatever dies. */
@Injectable()
export class RequestLogService implements CallLog, OnApplicationShutdown {
  private readonly logger = new Logger('RequestLog');
  private readonly openCalls = new Set<CallRecord>();
  /** The rows of calls that have begun and that the writer does not have yet, filled as far as they are journalled. */
  private readonly unfinished = new Map<CallRecord, LogRow>();
  /** Of this turn of the event loop: what is to be journalled at its end, in one write, and calls that are over. */
  private beginnings: [CallRecord, (refusal: GatewayError | null) => void][] = [];
  private endings: [CallRecord, () => void][] = [];
  private closed: CallRecord[] = [];
  private turnEnds = false;

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

  begin(call: CallRecord, begun: (refusal: GatewayError | null) => void): void {
    this.beginnings.push([call, begun]);
    this.atEndOfTurn();
  }

  end(call: CallRecord): void {
    const row = this.unfinished.get(call);
    if (row === undefined) return;
    setEnd(row, call);
    const file = this.tryAppend([encodeRecord('E', row)], 1, row.id);
    if (file !== null) call.keepEnd(file);
  }

  endThen(call: CallRecord, ended: () => void): void {
    // Past a shutdown that has waited as long as it could, the writer has its row.
    if (call.endKept || !this.unfinished.has(call)) {
      ended();
      return;
    }
    this.endings.push([call, ended]);
    this.atEndOfTurn();
  }

  durable(): Promise<void> | null {
    return this.journal.strict ? this.journal.sync() : null;
  }

  /** Ends the record's life. A call refused before it was dispatched leaves no row. */
  close(call: CallRecord): void {
    this.openCalls.delete(call);
    // Never begun; or the shutdown has waited for it as long as it could, and given the writer its row.
    if (!this.unfinished.has(call)) {
      call.copy?.discard();
      return;
    }
    // A handler that settled without a verdict means this process gave the call up.
    if (call.outcome === null) call.end('interrupted');
    call.settled();
    this.closed.push(call);
    this.atEndOfTurn();
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

  private atEndOfTurn(): void {
    if (this.turnEnds) return;
    this.turnEnds = true;
    setImmediate(this.endTurn);
  }

  private readonly endTurn = (): void => {
    this.turnEnds = false;
    const { beginnings, endings, closed } = this;
    this.beginnings = [];
    this.endings = [];
    this.closed = [];
    const entries: Entry[] = [];
    for (const [call, ended] of endings) {
      const row = this.unfinished.get(call);
      // A shutdown that waited as long as it could has given the writer the row.
      if (row === undefined) ended();
      else entries.push(this.ending(call, row, ended));
    }
    for (const [call, begun] of beginnings) {
      if (call.outcome !== null) begun(new GatewayError('shutting_down'));
      else if (!this.journal.accepting) begun(new GatewayError('journal_unavailable'));
      else entries.push(this.beginning(call, begun));
    }
    if (entries.length > 0) this.journal.appendBatch(entries);
    if (closed.length > 0) this.readClosed(closed);
  };

  private beginning(call: CallRecord, begun: (refusal: GatewayError | null) => void): Entry {
    const row = emptyRow();
    setBegin(row, call);
    return {
      json: encodeRecord('B', row),
      isStart: true,
      written: (file) => {
        call.keepBegin(file);
        this.unfinished.set(call, row);
        begun(null);
      },
      failed: (error) => begun(new GatewayError('journal_unavailable', { cause: error })),
    };
  }

  private ending(call: CallRecord, row: LogRow, ended: () => void): Entry {
    setEnd(row, call);
    return {
      json: encodeRecord('E', row),
      isStart: false,
      written: (file) => {
        call.keepEnd(file);
        ended();
      },
      failed: (error) => {
        this.complain(1, row.id, error);
        ended();
      },
    };
  }

  private readClosed(calls: readonly CallRecord[]): void {
    const read: ReadCall[] = [];
    for (const call of calls) {
      // Reading never fails: what is not certain is null.
      const usage = readUsage(call.contentType, call.origin.endpoint, call.copy);
      if ('then' in usage) void usage.then((figures) => this.finish([{ call, usage: figures }]));
      else read.push({ call, usage });
    }
    this.finish(read);
  }

  /** Journals the last of these calls, in one write, and hands their rows to the writer, once. */
  private finish(calls: readonly ReadCall[]): void {
    const ended = [];
    const records: string[] = [];
    for (const { call, usage } of calls) {
      const row = this.unfinished.get(call);
      if (row === undefined) continue;
      this.unfinished.delete(call);
      setEnd(row, call);
      setUsage(row, call, usage);
      // A row that memory has no place for waits there, whole.
      const isSpilled = this.writer.full;
      // An end that the journal could not take makes up for it here.
      const makesUp = !isSpilled && !call.endKept;
      if (isSpilled) records.push(encodeRecord('R', row));
      else if (makesUp) records.push(encodeRecord('E', row));
      if (!isSpilled) records.push(encodeRecord('U', row));
      ended.push({ call, usage, row, isSpilled, makesUp });
    }
    if (ended.length === 0) return;
    const file = this.tryAppend(records, ended.length, ended[0]!.row.id);
    for (const { call, usage, row, isSpilled, makesUp } of ended) {
      if (file === null) {
        this.writer.add(row, call.files, false);
      } else if (isSpilled) {
        this.writer.spill(file);
        this.journal.release(call.files);
      } else {
        call.files.push(file);
        if (makesUp) call.files.push(file);
        this.writer.add(row, call.files);
      }
      this.finished.notify(row, call, usage);
    }
  }

  private tryAppend(records: readonly string[], calls: number, firstId: string): JournalFile | null {
    try {
      return this.journal.appendLines(encodeLines(records), records.length, true);
    } catch (error) {
      this.complain(calls, firstId, error);
      return null;
    }
  }

  /** The calls have happened; their rows are still in memory and go to Postgres from there. */
  private complain(count: number, firstId: string, error: unknown): void {
    const calls = count === 1 ? `call ${firstId}` : `${count} calls, ${firstId} the first,`;
    this.logger.error(`The end of ${calls} could not be journalled: ${describeError(error)}`);
  }
}
