import { Injectable } from '@nestjs/common';
import { CallRecord, type CallOrigin } from './call-record.js';
import { toLogRow } from './log-row.js';
import { LogWriter } from './log-writer.js';

/** A key of the gateway's own format anywhere in a text; the text is then not stored. */
const KEY_FORMAT = /ptn_[0-9A-Za-z]{38}/;

/** Keeps the records of calls under way and sees to it that each begun one becomes a row. */
@Injectable()
export class RequestLogService {
  private readonly openCalls = new Set<CallRecord>();

  constructor(private readonly writer: LogWriter) {}

  open(origin: CallOrigin): CallRecord {
    const call = new CallRecord(origin);
    this.openCalls.add(call);
    return call;
  }

  /** Ends the record's life. A call refused before it was dispatched leaves no row. */
  close(call: CallRecord): void {
    this.openCalls.delete(call);
    if (!call.begun) return;
    // A handler that settled without a verdict means this process gave the call up.
    call.end('interrupted');
    this.writer.add(toLogRow(call, (text) => KEY_FORMAT.test(text)));
  }

  /** The verdict of calls the process is about to cut; what happens to their sockets afterwards is our own doing. */
  interruptOpenCalls(): void {
    for (const call of this.openCalls) call.end('interrupted');
  }
}
