/** What a response lists and its usage leaves out. A count of 0 is left out. */
export interface ListedCounts {
  web_searches?: number;
  file_searches?: number;
  code_sessions?: number;
  images?: number;
  /** 1: there may have been more. */
  uncounted_tools?: number;
}

/** Counts what a response lists, chunk by chunk: a copy of its start and end does not have all of it. */
export interface ListedCounter {
  add(chunk: Buffer): void;
  /** @param model named in the response */
  end(model: string | null): ListedCounts;
}
