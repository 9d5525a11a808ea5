import { HttpException, HttpStatus, Injectable } from '@nestjs/common';
import type { Access } from '../admin/access/access.js';

/** Exports of one actor at a time. */
const MOST_OF_ONE = 2;
/** Exports of viewers and members at a time: fewer than there are connections, so that administrators always get one. */
const MOST_OF_OTHERS = 4;

/** Limits how many exports run in this process: each holds a connection and a snapshot for as long as its client reads. */
@Injectable()
export class ExportSlots {
  private readonly running: Pick<Access, 'actor' | 'role'>[] = [];

  /** @returns ends the export @throws HttpException 429 if too many are running */
  take(access: Pick<Access, 'actor' | 'role'>): () => void {
    const own = this.running.filter(({ actor }) => actor.name === access.actor.name).length;
    const others = this.running.filter(({ role }) => role !== 'admin').length;
    if (own >= MOST_OF_ONE)
      throw rejected(
        `You have ${own} exports running, the most at a time. Wait for their end, or close one.`,
      );
    if (access.role !== 'admin' && others >= MOST_OF_OTHERS)
      throw rejected(
        `${others} exports are running, the most at a time. Try again later: one that nobody reads ends after a minute.`,
      );
    this.running.push(access);
    return () => void this.running.splice(this.running.indexOf(access), 1);
  }
}

function rejected(message: string): HttpException {
  return new HttpException(message, HttpStatus.TOO_MANY_REQUESTS);
}
