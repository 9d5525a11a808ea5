import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { describeFault } from '../database/database-fault.js';
import { Refusal } from '../refusal.js';
import { type CallLog, type CallOrigin, CallRecord } from './call-record.js';
import { Journal } from './journal.js';
import type { JournalFile } from './journal-file.js';
import type { JournalRecord } from './journal-line.js';
import { type BeginColumns, beginColumns, endColumns, type LogRow, usageColumns } from './log-row.js';
import { LogWriter } from './log-writer.js';
import { NO_USAGE, type Usage } from './token-figures.js';
import { readUsage } from './usage-reader.js';

/** Keeps the records of calls under way and sees to it that each begun one becomes a row, whatever dies. */
@Injectable()
export class RequestLogService implements CallLog, OnApplicationShutdown {
  private readonly logger = new Logger('RequestLog');
  private readonly openCalls = new Set<CallRecord>();
  /** Calls that were begun and whose row the writer does not have yet, with what was journalled of their beginning. */
  private readonly unfinished = new Map<CallRecord, BeginColumns>();

  constructor(
    private readonly journal: Journal,
    private readonly writer: LogWriter,
  ) {}

  open(origin: CallOrigin): CallRecord {
    const call = new CallRecord(origin, this);
    this.openCalls.add(call);
    return call;
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
      file = this.journal.append({ t: 'B', ...begin });
    } catch (error) {
      throw new Refusal('journal_unavailable', { cause: error });
    }
    this.unfinished.set(call, begin);
    return file;
  }

  ended(call: CallRecord): JournalFile | null {
    return this.tryAppend({ t: 'E', id: call.origin.id, ...endColumns(call) });
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
    // Reading never fails: what is not certain is null.
    void readUsage({
      contentType: call.contentType,
      contentEncoding: call.contentEncoding,
      endpoint: call.origin.endpoint,
      copy: call.copy,
    }).then((usage) => this.finish(call, usage));
  }

  /** The verdict of calls the process is about to cut; what happens to their sockets afterwards is our own doing. */
  interruptOpenCalls(): void {
    for (const call of this.openCalls) call.end('interrupted');
  }

  async onApplicationShutdown(): Promise<void> {
    // The shutdown has waited for these; a row without figures is better than none before the next start.
    for (const call of this.unfinished.keys()) {
      if (call.outcome === null) call.end('interrupted');
      this.finish(call, NO_USAGE);
    }
    await this.writer.stop();
    await this.journal.close();
  }

  /** Journals the last of a call and hands its row to the writer, once. */
  private finish(call: CallRecord, usage: Usage): void {
    const begin = this.unfinished.get(call);
    if (begin === undefined) return;
    this.unfinished.delete(call);
    const read = usageColumns(call, usage);
    const row: LogRow = { ...begin, ...endColumns(call), ...read };
    // An end that the journal could not take makes up for it here; and a row that memory has no place for waits there.
    const whole = this.writer.full || !call.endKept;
    const file = this.tryAppend(whole ? { t: 'R', ...row } : { t: 'U', id: row.id, ...read });
    if (file === null) {
      this.writer.add(row, call.files, false);
    } else if (this.writer.full && whole) {
      this.writer.park(file);
      this.journal.release(call.files);
    } else {
      this.writer.add(row, [...call.files, file]);
    }
  }

  private tryAppend(record: JournalRecord): JournalFile | null {
    try {
      return this.journal.append(record);
    } catch (error) {
      // The call has happened; its row is still in memory and goes to Postgres from there.
      this.logger.error(`The end of call ${record.id} could not be journalled: ${describeFault(error)}`);
      return null;
    }
  }
}
