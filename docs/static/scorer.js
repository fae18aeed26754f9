// Ranks results of the search by how many of its words are in their titles: Sphinx itself counts the
// best word alone, so that a page on "channel matrix" would be as good as any on channels.
const SMALL_WORDS = ["a", "an", "and", "for", "in", "my", "of", "on", "the", "to"];

function titleShare(title) {
  const query = new URLSearchParams(window.location.search).get("q") || "";
  const words = query
    .toLowerCase()
    .split(/[^\w-]+/)
    .filter((word) => word && !SMALL_WORDS.includes(word));
  const inTitle = words.filter((word) => title.toLowerCase().includes(word));
  return words.length ? inTitle.length / words.length : 0;
}

var Scorer = {
  score: ([docname, title, anchor, description, score]) => {
    const share = titleShare(title);
    return score + 10 * share + (share === 1 ? 10 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
