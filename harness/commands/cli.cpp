#include "harness/commands/cli.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "harness/core/error.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

constexpr int kHelpColumn = 26;

std::string in_quotes(const std::string& word) { return "'" + text::printable(word) + "'"; }

// "  --name VALUE    help", the help wrapped under itself.
std::string entry(const std::string& left, const std::string& help) {
  const std::string start = "  " + left;
  std::string first = text::width(start) < kHelpColumn ? text::fit(start, kHelpColumn) : start + "\n";
  const std::string body = text::wrap(help, text::kColumns - kHelpColumn);
  std::string page;
  bool first_line = !first.ends_with('\n');
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = body.find('\n', at) + 1;
    page += (std::exchange(first_line, false) ? std::string() : std::string(kHelpColumn, ' ')) + body.substr(at, end - at);
    at = end;
  }
  return first + page;
}

std::string with_value(const OptionSpec& option) {
  return option.value.empty() ? option.name : option.name + " " + option.value;
}

std::string see_help(const Verb* verb) {
  return "see dcpcheck " + (verb == nullptr ? std::string() : verb->name + " ") + "--help";
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = text::nearest(word, known);
  return near.empty() ? "" : ": did you mean " + near + "?";
}

// One command line being read. CLI11 binds by reference, so it stays where it is.
class WordsReader {
 public:
  explicit WordsReader(const std::vector<Verb>& verbs) : verbs_(verbs) {
    app_.set_help_flag();
    app_.require_subcommand(0, 1);
    app_.allow_extras();
    app_.add_flag("-h,--help", help_);
    app_.add_flag("-V,--version", version_);
    for (const Verb& verb : verbs_) {
      // Every option is known before the verb as well: which verb they belong to is checked once that is known.
      for (const OptionSpec& option : verb.options)
        if (known_.insert(option.name).second) add(app_, option);
      CLI::App& command = *app_.add_subcommand(verb.name);
      command.set_help_flag();
      command.fallthrough();
      command.allow_extras();
      if (!verb.operand.name.empty()) command.add_option(verb.operand.name, arguments_.operands);
      commands_.emplace_back(&command, &verb);
    }
  }

  CommandLine read(const std::vector<std::string>& words, const std::string& version) {
    std::vector<std::string> backwards(words.rbegin(), words.rend());  // CLI11 takes them so
    try {
      app_.parse(std::move(backwards));
    } catch (const CLI::ParseError& error) {
      throw InputError(mistake(error) + "; " + see_help(verb()));
    }
    CommandLine line;
    if (help_) {
      line.answer = help_page(verbs_, verb());
      return line;
    }
    if (version_) {
      line.answer = "dcpcheck " + version + "\n";
      return line;
    }
    refuse_extras();
    line.verb = verb();
    if (line.verb == nullptr)
      throw InputError("no verb was given: one of " + text::list(verb_names()) + "; " + see_help(nullptr));
    take_config(*line.verb);
    check_options(*line.verb);
    line.arguments = arguments_;
    return line;
  }

 private:
  void add(CLI::App& app, const OptionSpec& option) {
    if (option.value.empty()) {
      app.add_flag_callback(option.name, [this, name = option.name] { arguments_.options[name]; });
      return;
    }
    const auto keep = [this, name = option.name](const std::vector<std::string>& values) {
      auto& list = arguments_.options[name];
      list.insert(list.end(), values.begin(), values.end());
    };
    app.add_option_function<std::vector<std::string>>(option.name, keep)
        ->type_size(1)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  const Verb* verb() const {
    for (const auto& [command, verb] : commands_)
      if (command->parsed()) return verb;
    return nullptr;
  }

  std::vector<std::string> verb_names() const {
    std::vector<std::string> names;
    for (const Verb& verb : verbs_)
      if (!verb.hidden) names.push_back(verb.name);
    return names;
  }

  static std::string mistake(const CLI::ParseError& error) {
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return error.what();
    const std::string text = error.what();  // "--json: 1 required TEXT missing"
    return text.substr(0, text.find(':')) + " needs a value";
  }

  // Words that nothing took: a mistyped option or verb, or one operand too many.
  void refuse_extras() const {
    std::vector<std::string> extras = app_.remaining(true);
    if (extras.empty()) return;
    const Verb* verb = this->verb();
    const auto option =
        std::find_if(extras.begin(), extras.end(), [](const std::string& word) { return word.starts_with("-"); });
    if (option != extras.end()) {
      const std::string name = option->substr(0, option->find('='));
      std::vector<std::string> names{"--help", "--version"};
      for (const Verb& each : verbs_)
        for (const OptionSpec& spec : each.options)
          if (verb == nullptr || verb == &each) names.push_back(spec.name);
      throw InputError("there is no option " + in_quotes(name) + did_you_mean(name, names) + "; " + see_help(verb));
    }
    if (verb == nullptr)
      throw InputError("there is no verb " + in_quotes(extras.front()) + did_you_mean(extras.front(), verb_names()) + "; " +
                       see_help(nullptr));
    throw InputError(verb->name + " takes no " + in_quotes(extras.front()) + "; " + see_help(verb));
  }

  // Options out of the file that --config names, in the form of CLI11's own: the command line goes before it.
  void take_config(const Verb& verb) {
    const auto given = arguments_.options.find("--config");
    if (given == arguments_.options.end() || given->second.empty()) return;
    const std::string& path = given->second.back();
    std::ifstream file(path);
    if (!file) throw InputError("--config " + text::printable(path) + " cannot be read");
    std::vector<CLI::ConfigItem> items;
    try {
      items = CLI::ConfigTOML().from_config(file);
    } catch (const CLI::Error& error) {
      throw InputError("--config " + text::printable(path) + ": " + error.what());
    }
    std::vector<std::string> names;
    for (const OptionSpec& option : verb.options) names.push_back(option.name);
    std::map<std::string, std::vector<std::string>, std::less<>> options;
    for (const CLI::ConfigItem& item : items) {
      if (item.name == "++" || item.name == "--") continue;  // where a section begins and ends
      const std::string name = "--" + item.name;
      const std::string place = "--config " + text::printable(path) + ": ";
      if (!item.parents.empty() && (item.parents.size() > 1 || item.parents.front() != verb.name))
        throw InputError(place + "there is no section " + in_quotes(item.fullname().substr(0, item.fullname().rfind('.'))) +
                         "; [" + verb.name + "] has the options of " + verb.name);
      const auto spec =
          std::find_if(verb.options.begin(), verb.options.end(), [&](const OptionSpec& option) { return option.name == name; });
      if (spec == verb.options.end() || name == "--config")
        throw InputError(place + verb.name + " has no option " + in_quotes(item.name) + did_you_mean(name, names));
      if (spec->value.empty()) {
        if (item.inputs != std::vector<std::string>{"true"} && item.inputs != std::vector<std::string>{"false"})
          throw InputError(place + item.name + " is true or false");
        if (item.inputs.front() == "true") options[name];
        continue;
      }
      auto& values = options[name];
      values.insert(values.end(), item.inputs.begin(), item.inputs.end());
    }
    for (auto& [name, values] : options) arguments_.options.emplace(name, std::move(values));
  }

  void check_options(const Verb& verb) const {
    for (const auto& given : arguments_.options) {
      const std::string& name = given.first;  // no structured binding: clang 14 cannot capture one
      const std::vector<std::string>& values = given.second;
      const auto spec =
          std::find_if(verb.options.begin(), verb.options.end(), [&](const OptionSpec& option) { return option.name == name; });
      if (spec == verb.options.end()) throw InputError(verb.name + " has no option " + name + "; " + see_help(&verb));
      if (!spec->repeats && values.size() > 1) throw InputError(name + " was given " + text::count(std::ssize(values), "time"));
      for (const std::string& value : values)
        if (value.starts_with("--")) throw InputError(name + " needs a value, and " + in_quotes(value) + " is an option");
    }
    if (verb.operand.required && arguments_.operands.empty())
      throw InputError(verb.name + " needs a " + verb.operand.name + ": " + verb.operand.help + "; " + see_help(&verb));
    if (!verb.operand.repeats && arguments_.operands.size() > 1)
      throw InputError(verb.name + " takes one " + verb.operand.name + ", not " + in_quotes(arguments_.operands[1]) + " too");
  }

  const std::vector<Verb>& verbs_;
  CLI::App app_;
  Arguments arguments_;
  bool help_ = false, version_ = false;
  std::set<std::string> known_;
  std::vector<std::pair<const CLI::App*, const Verb*>> commands_;
};

}  // namespace

const std::string kAbout =
    "differential correctness of kernels that write and read a paged KV cache under decode context parallelism.";
const std::string kConventions = "Options may stand on either side of the verb. Results go to stdout, messages to stderr.";
const std::string kExitCodes =
    "0 all as expected and at least one case ran; 1 a case was not as expected; 2 bad usage or bad input; 3 nothing was "
    "vouched "
    "for; 77 all skipped, with a reason; 99 dcpcheck itself failed (a write that did not succeed is one).";

std::string help_page(const std::vector<Verb>& verbs, const Verb* verb) {
  if (verb == nullptr) {
    std::string page =
        text::wrap("dcpcheck: " + kAbout, text::kColumns) + "\nUsage: dcpcheck VERB [OPTIONS] [ARGUMENTS]\n\nVerbs:\n";
    for (const Verb& each : verbs)
      if (!each.hidden) page += entry(each.name, each.summary);
    page += "\nOptions:\n" + entry("-h, --help", "This page; dcpcheck VERB --help: the verb's") +
            entry("-V, --version", "Version and revision");
    return page + "\n" + text::wrap(kConventions, text::kColumns) + "\n" +
           text::wrap("Exit codes: " + kExitCodes, text::kColumns);
  }
  std::string usage = "Usage: dcpcheck " + verb->name + " [OPTIONS]";
  const OperandSpec& operand = verb->operand;
  if (!operand.name.empty()) {
    const std::string name = operand.name + (operand.repeats ? "..." : "");
    usage += operand.required ? " " + name : " [" + name + "]";
  }
  std::string page = usage + "\n\n" + text::wrap(verb->summary + ".", text::kColumns);
  if (!verb->details.empty()) page += "\n" + text::wrap(verb->details, text::kColumns);
  if (!operand.name.empty()) page += "\nArguments:\n" + entry(operand.name, operand.help);
  page += "\nOptions:\n";
  for (const OptionSpec& option : verb->options)
    page += entry(with_value(option), option.help + (option.repeats ? "; may be given more than once" : ""));
  return page + entry("-h, --help", "This page");
}

CommandLine parse_command_line(const std::vector<std::string>& words, const std::vector<Verb>& verbs,
                               const std::string& version) {
  return WordsReader(verbs).read(words, version);
}

}  // namespace dcpcheck
