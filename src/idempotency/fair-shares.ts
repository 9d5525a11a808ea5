/** The key that uses something, and its team. */
export interface Owner {
  readonly keyId: string;
  readonly teamId: string;
}

/**
 * Divides an amount, such as the memory of a process for request bodies, among keys and teams. A team may hold at most as
 * much as is then left for all others, and a key at most as much as is then left for its team. So one team alone gets at
 * most half of the amount, one key alone a third, and n teams leave 1/(n + 1) of it to others.
 */
export class FairShares {
  private used = 0;
  private readonly byTeam = new Map<string, number>();
  private readonly byKey = new Map<string, number>();

  constructor(private readonly total: number) {}

  /** Could this much more be reserved now? */
  hasRoom({ keyId, teamId }: Owner, amount: number): boolean {
    const left = this.total - this.used - amount;
    const leftForTeam = left - (this.byTeam.get(teamId) ?? 0) - amount;
    return (this.byKey.get(keyId) ?? 0) + amount <= leftForTeam;
  }

  /** @returns false if there is no room: then nothing is reserved */
  reserve(owner: Owner, amount: number): boolean {
    if (!this.hasRoom(owner, amount)) return false;
    this.add(owner, amount);
    return true;
  }

  free(owner: Owner, amount: number): void {
    this.add(owner, -amount);
  }

  private add({ keyId, teamId }: Owner, amount: number): void {
    this.used += amount;
    addTo(this.byTeam, teamId, amount);
    addTo(this.byKey, keyId, amount);
  }
}

function addTo(amounts: Map<string, number>, id: string, amount: number): void {
  const sum = (amounts.get(id) ?? 0) + amount;
  if (sum === 0) amounts.delete(id);
  else amounts.set(id, sum);
}
