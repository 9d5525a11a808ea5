import { HttpException, HttpStatus, Injectable } from '@nestjs/common';
import type { Access } from '../admin/access/access.js';
import { isOfTeams } from '../admin/access/role.js';

/** Exports of one actor at a time. */
const MAX_OF_ONE = 2;
/** Exports of viewers and members at a time: fewer than there are connections, so that administrators always get one. */
const MAX_OF_OTHERS = 4;

/** Exports of members of the same teams at a time, so that one team leaves some to the others and to viewers. */
const MAX_OF_TEAM = 2;
/** Exports of all members at a time: one is left to viewers. */
const MAX_OF_MEMBERS = 3;

type Exporter = Pick<Access, 'actor' | 'role' | 'scope'>;

/** Limits how many exports run in this process: each holds a connection and a snapshot for as long as its client reads. */
@Injectable()
export class ExportSlots {
  private readonly running: Exporter[] = [];

  /** @returns ends the export @throws HttpException 429 if too many are running */
  take(access: Exporter): () => void {
    const own = this.running.filter(({ actor }) => actor.name === access.actor.name).length;
    const others = this.running.filter(({ role }) => role !== 'admin').length;
    const members = this.running.filter(({ role }) => isOfTeams(role));
    const ofTeam = members.filter(({ scope }) => scope!.some((team) => access.scope?.includes(team)));
    if (own >= MAX_OF_ONE)
      throw rejected(
        `You have ${own} exports running, the most at a time. Wait for their end, or close one.`,
      );
    if (ofTeam.length >= MAX_OF_TEAM) throw isFull(`${ofTeam.length} exports of your teams`);
    if (isOfTeams(access.role) && members.length >= MAX_OF_MEMBERS)
      throw isFull(`${members.length} exports of members`);
    if (access.role !== 'admin' && others >= MAX_OF_OTHERS) throw isFull(`${others} exports`);
    this.running.push(access);
    return () => void this.running.splice(this.running.indexOf(access), 1);
  }
}

function isFull(what: string): HttpException {
  return rejected(
    `${what} are running, the most at a time. Try again later: one that nobody reads ends after a minute.`,
  );
}

function rejected(message: string): HttpException {
  return new HttpException(message, HttpStatus.TOO_MANY_REQUESTS);
}
