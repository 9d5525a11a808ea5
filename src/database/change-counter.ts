/**
 * Reads how often rows of a kind have changed. Within the query that reads the rows, both are of one snapshot; with
 * `FOR UPDATE` it waits for other changes and holds them up.
 */
export const countOfChanges = (counter: 'limits' | 'providers' | 'routes' | 'trusts') =>
  `SELECT value FROM change_counter WHERE name = '${counter}'`;
