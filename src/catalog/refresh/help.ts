/** What `gatehouse help` says of the command, without loading it. */
export const CATALOG_HELP = `gatehouse catalog refresh
    fetches facts about models from the registry (GATEHOUSE_CATALOG_URL) and the lists of the configured providers
gatehouse catalog show
    says how many models are known, as of when`;
