#include "harness/commands/manual.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "harness/commands/cli.hpp"

namespace dcpcheck {
namespace {

// Text as roff takes it for itself: no escapes, no requests, hyphens that can be searched for, and dots for an ellipsis, as not
// every roff reads UTF-8.
std::string roff(std::string_view text) {
  constexpr std::string_view kEllipsis = "…";
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (out.empty() && (c == '.' || c == '\'')) out += "\\&";
    if (text.substr(at).starts_with(kEllipsis)) {
      out += "...";
      at += kEllipsis.size() - 1;
    } else if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string paragraph(std::string_view text) { return ".PP\n" + roff(text) + "\n"; }

std::string tagged(const std::string& tag, const std::string& value, const std::string& text) {
  return ".TP\n\\fB" + roff(tag) + "\\fR" + (value.empty() ? "" : " \\fI" + roff(value) + "\\fR") + "\n" + roff(text) + "\n";
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : std::string(between)) + word;
  return line;
}

// The words of "auto|host|cuda" that are to be typed as they stand; none of "FILE|-".
std::vector<std::string> literal_words(const std::string& value) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= value.size();) {
    const std::size_t end = std::min(value.find('|', at), value.size());
    const std::string word = value.substr(at, end - at);
    const bool typed = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
    if (typed) words.push_back(word);
    at = end + 1;
  }
  return words;
}

}  // namespace

std::string man_page(const std::vector<Verb>& verbs, const std::string& version) {
  std::string page = ".TH DCPCHECK 1 \"\" \"dcpcheck " + roff(version) + "\"\n.SH NAME\ndcpcheck \\- " + roff(kAbout) +
                     "\n.SH SYNOPSIS\n\\fBdcpcheck\\fR \\fIVERB\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]\n.SH DESCRIPTION\n" +
                     roff(kConventions) + "\n.SH VERBS\n";
  for (const Verb& verb : verbs) {
    if (verb.hidden) continue;
    page += ".SS " + roff(verb.name) + "\n" + roff(verb.summary + ".") + "\n";
    if (!verb.details.empty()) page += paragraph(verb.details);
    if (!verb.operand.name.empty()) page += tagged(verb.operand.name, "", verb.operand.help);
    for (const OptionSpec& option : verb.options)
      page += tagged(option.name, option.value, option.help + (option.repeats ? "; may be given more than once" : ""));
  }
  return page + ".SH EXIT STATUS\n" + roff(kExitCodes) + "\n";
}

std::string bash_completion(const std::vector<Verb>& verbs) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<std::string>> values;  // by option: words that it takes
  std::set<std::string> valued;                            // options that take anything else
  std::string options, operands;
  for (const Verb& verb : verbs) {
    if (verb.hidden) continue;
    names.push_back(verb.name);
    std::vector<std::string> own{"--help"};
    for (const OptionSpec& option : verb.options) {
      own.push_back(option.name);
      if (option.value.empty()) continue;
      if (const std::vector<std::string> words = literal_words(option.value); !words.empty()) {
        values[option.name] = words;
      } else {
        valued.insert(option.name);
      }
    }
    options += "      " + verb.name + ") options='" + joined(own, " ") + "' ;;\n";
    if (const std::vector<std::string> words = literal_words(verb.operand.name); words.size() > 1)
      operands += "    " + verb.name + ") [[ $at -ne $((place + 1)) ]] || words='" + joined(words, " ") + "' ;;\n";
  }
  std::string choices;
  for (const auto& [option, words] : values)
    choices += "    " + option + ") COMPREPLY=($(compgen -W '" + joined(words, " ") + "' -- \"$word\")); return ;;\n";
  // Files are bash's own default where there is nothing else to offer.
  return "# bash completion of dcpcheck, made from the words of its --help.\n"
         "_dcpcheck() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} at=$COMP_CWORD verb='' place=0 i options='' words=''\n"
         "  COMPREPLY=()\n"
         "  for ((i = 1; i < at; ++i)); do\n"
         "    case ${COMP_WORDS[i]} in\n"
         "      " +
         joined(names, " | ") +
         ") verb=${COMP_WORDS[i]} place=$i; break ;;\n"
         "    esac\n"
         "  done\n"
         "  case ${COMP_WORDS[at - 1]} in\n" +
         choices + "    " + joined({valued.begin(), valued.end()}, " | ") +
         ") return ;;\n"
         "  esac\n"
         "  if [[ -z $verb ]]; then\n"
         "    COMPREPLY=($(compgen -W '" +
         joined(names, " ") +
         " --help --version' -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  if [[ $word == -* ]]; then\n"
         "    case $verb in\n" +
         options +
         "    esac\n"
         "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  case $verb in\n" +
         operands +
         "    *) ;;\n"
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _dcpcheck dcpcheck\n";
}

}  // namespace dcpcheck
